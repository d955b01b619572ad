# %% [markdown]
# # Lesson 7: Why a feed-forward
#
# An encoder layer has two parts. Attention lets tokens look at each other. The *feed-forward* net takes each token by
# itself and sends it through two linear maps with a ReLU between them. In the usual proportions it holds two thirds of
# the layer's weights (8d² of 12d²), yet all the talk is of attention. This lesson shows what is missing without it.
#
# **Afterwards you know** why attention can only average its values, which functions of a single token it cannot
# learn, and where the bend in it comes from.
#
# ## Attention only averages
#
# Here are five tokens with random queries, keys and values of two features. Each row of the weights is a softmax: no
# weight is negative, and a row adds up to one. A sum with such weights is an *average*, in words of geometry a *convex
# combination*: it lies inside the hull of the values, and cannot leave it.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
import os
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull

import minigrad as mg
from minigrad import Tensor, nn, no_grad, optim
from minigrad import functional as F

from transformer.model import MultiHeadAttention

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)
UPDATES = int(os.environ.get("LESSON_UPDATES", "1200"))

rng = np.random.default_rng(7)
Q, K, V = (Tensor(rng.normal(size=(5, 2))) for _ in range(3))
out, A = F.scaled_dot_product_attention(Q, K, V, return_weights=True)
print("smallest weight", round(float(A.min()), 4), "and sums of the rows", A.sum(axis=-1).numpy().round(12))
for feature in range(2):
    before, after = V.numpy()[:, feature], out.numpy()[:, feature]
    print(f"feature {feature}: values {before.min():.3f} to {before.max():.3f}, "
          f"outputs {after.min():.3f} to {after.max():.3f}")

# %% [markdown]
# The outputs span less than the values did: averaging shrinks. (Lesson 9 follows this to its end.) The projections W_V
# and W_O come before and after the average. They turn and stretch it, but they are linear, and the average stays what
# it is.
#
# ## Given the weights, everything is linear
#
# Suppose we knew the weights A. Then the output is A·V and nothing else: twice the values give twice the output, and
# two sets of values can be added before or after. ReLU fails the same test.

# %%
U = Tensor(rng.normal(size=(5, 2)))


def attend(values: Tensor) -> Tensor:
    """The attention above, with other values but the same queries and keys."""
    return F.scaled_dot_product_attention(Q, K, values)


def gap(f) -> float:
    """How far f(2V + 3U) is from 2f(V) + 3f(U): 0 for a linear f."""
    return float(abs(f(2 * V + 3 * U) - (2 * f(V) + 3 * f(U))).max())


print(f"attention as a function of its values: {gap(attend):.0e}; ReLU: {gap(F.relu):.2f}")

# %% [markdown]
# So attention decides *how much* of each token to take, and that decision bends: there is a softmax in it. But *what is
# done* to what is taken is a matrix, the same for all. In the backward pass, too: dV = Aᵀ dO contains no V.
#
# ## A token alone
#
# Now take a sentence of a single token. Softmax over one score is 1, whatever the score. All of W_Q and W_K is void,
# and the layer is x W_V W_O plus biases, with the residual path x + x W_V W_O. That is affine: a tilted plane over the
# features. Let the task be the product of a token's two features, x₁·x₂. At the corners ±1 this is XOR: +1 if the signs
# agree, −1 if not. How well can a plane do? Least squares on a grid over the square answers: the best plane is zero
# everywhere, and its mean squared error is 1/9, as bad as saying nothing.

# %%
ticks = (np.arange(100) + 0.5) / 50 - 1  # the middles of 100 cells from −1 to 1
square = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)  # (10000, 2)
target = square[:, 0] * square[:, 1]
columns = np.column_stack([square, np.ones(len(square))])
plane = np.linalg.lstsq(columns, target, rcond=None)[0]
error = np.square(target - columns @ plane).mean()
print("the best plane has the coefficients", abs(plane).round(12), f"and the error {error:.4f}; 1/9 is {1 / 9:.4f}")

# %% [markdown]
# ## Train both
#
# One net has attention only, the other attention and then a feed-forward, each on a residual path. (We leave out the
# norms: they bend a little, too, and would blur the question.) Both see the same sentences, of one to four random
# tokens, and are to give x₁·x₂ of each token.

# %%
WIDTH = 16


class Layer(nn.Module):
    """A layer of two heads that reads tokens of two features and writes one number for each."""

    def __init__(self, feed_forward: bool) -> None:
        super().__init__()
        self.embed = nn.Linear(2, WIDTH)
        self.attention = MultiHeadAttention(WIDTH, num_heads=2)
        self.feed_forward = None
        if feed_forward:
            self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH))
        self.read = nn.Linear(WIDTH, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T, 2) → (B, T)"""
        x = self.embed(tokens)
        x = x + self.attention(x, x, x)
        if self.feed_forward is not None:
            x = x + self.feed_forward(x)
        return self.read(x)[..., 0]


def sentences(rng: np.random.Generator, count: int, length: int) -> tuple[Tensor, Tensor]:
    """Tokens drawn from the square, (count, length, 2), and their products, (count, length)."""
    tokens = rng.uniform(-1, 1, (count, length, 2)).astype("float32")
    return Tensor(tokens), Tensor(tokens[..., 0] * tokens[..., 1])


def train(feed_forward: bool, updates: int) -> Layer:
    """A layer after `updates` of Adam; the lengths of the sentences take turns."""
    mg.manual_seed(0)
    rng = np.random.default_rng(0)
    layer = Layer(feed_forward)
    optimizer = optim.Adam(layer.parameters(), lr=5e-3)
    for update in range(updates):
        tokens, products = sentences(rng, count=64, length=1 + update % 4)
        loss = F.mse_loss(layer(tokens), products)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return layer


def errors(layer: Layer) -> list[float]:
    """The mean squared error on unseen sentences of 1, 2, 3 and 4 tokens."""
    rng = np.random.default_rng(1)
    with no_grad():
        tests = [sentences(rng, 4000, length) for length in (1, 2, 3, 4)]
        return [float(F.mse_loss(layer(tokens), products)) for tokens, products in tests]


layers = {"attention alone": train(False, UPDATES), "attention and feed-forward": train(True, UPDATES)}
print("mean squared error in sentences of     1       2       3       4 tokens")
for name, layer in layers.items():
    print(f"{name:33}", "".join(f"{error:8.4f}" for error in errors(layer)))

# %% [markdown]
# With a feed-forward the error is nothing, below a thousandth, at every length. Without, a token alone has an error
# above 1/9, and training longer cannot help: no plane does better. In longer sentences the error is smaller, so
# *something* bends. What it is, is the question at the end. First the picture: values and outputs of the five tokens
# above, and what each net says of a token alone, everywhere on the square.

# %%
corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])


def alone(layer: Layer, tokens: np.ndarray) -> np.ndarray:
    """What a layer says of each of (N, 2) tokens in a sentence of its own: (N,)."""
    with no_grad():
        return layer(Tensor(tokens[:, None].astype("float32"))).numpy()[:, 0]


figure = Figure(figsize=(8, 6.8), layout="constrained")
averages, *maps = figure.subplots(2, 2).flat
hull = V.numpy()[ConvexHull(V.numpy()).vertices]
averages.fill(*hull.T, color="#0072B2", alpha=0.15, label="hull of the values")
averages.plot(*V.numpy().T, "o", color="#0072B2", markersize=9, label="values")
averages.plot(*out.numpy().T, "s", color="#D55E00", markersize=8, label="outputs: averages")
averages.set(title="five tokens: attention averages", xlabel="feature 0", ylabel="feature 1", ylim=(-0.8, 0.35))
averages.legend(frameon=False, loc="lower right")
maps[0].set_title("one token: the task, x₁·x₂")
surfaces = [(target, corners.prod(axis=1))]
for axes, (name, layer) in zip(maps[1:], layers.items(), strict=True):
    axes.set_title(f"one token: {name}")
    surfaces.append((alone(layer, square), alone(layer, corners)))
for axes, (surface, at_corners) in zip(maps, surfaces, strict=True):
    levels = np.linspace(-1.125, 1.125, 10)
    filled = axes.contourf(ticks, ticks, surface.reshape(100, 100), levels, cmap="PuOr_r", extend="both")
    for (x, y), value in zip(corners, at_corners, strict=True):
        axes.plot(x, y, "ko", markersize=5, clip_on=False)
        axes.text(0.76 * x, 0.82 * y, f"{value:+.2f}", ha="center", va="center", backgroundcolor="white", fontsize=9)
    axes.set(xlabel="x₁", ylabel="x₂", aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1], xlim=(-1, 1), ylim=(-1, 1))
figure.colorbar(filled, ax=maps, label="output for a token alone", shrink=0.8, ticks=[-1, -0.5, 0, 0.5, 1])
figure.savefig(PICTURES / "07_why_a_feed_forward.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# In longer sentences attention alone did better than any plane. So let the sentence hold all four corners, (±1, ±1).
# Can you choose W_Q, W_K and W_V so that attention alone gives each token its XOR? Then is the feed-forward needed at
# all?

# %% [markdown]
# ## The answer
#
# You can. Let W_K be the identity. A query q then weighs the token x′ by exp(q·x′) = exp(q₁x′₁)·exp(q₂x′₂), a product
# with one factor for each feature. So the average of x′₁ over the four corners is (e^q₁ − e^−q₁)/(e^q₁ + e^−q₁) =
# tanh(q₁), and likewise x′₂ gives tanh(q₂). If the value is x′₁ − x′₂, the output is tanh(q₁) − tanh(q₂), with q affine
# in x: *a feed-forward net of two hidden units!* Queries q = 3·(x₁ + x₂ − 1, x₁ + x₂ + 1) make it XOR, up to a bias of
# 1.
#
# But the hidden units were borrowed from the neighbours: it is they who are averaged. Take them away, and the same
# weights give x₁ − x₂ + 1, affine again and wrong. The feed-forward brings hidden units of its own, which are there for
# each token in whatever sentence it stands.

# %%
def attention_alone(tokens: np.ndarray) -> np.ndarray:
    """The attention of the answer on a sentence of (T, 2) tokens, and the bias of 1: (T,)."""
    queries = 3 * (tokens @ np.ones((2, 2)) + [-1, 1])
    values = tokens @ np.array([[1.0], [-1.0]])
    return 1 + F.scaled_dot_product_attention(Tensor(queries), Tensor(tokens), Tensor(values), scale=1).numpy()[:, 0]


first, second = corners.T
hidden = 1 + np.tanh(3 * (first + second - 1)) - np.tanh(3 * (first + second + 1))
together = attention_alone(corners)
for token, value in zip(corners, together, strict=True):
    by_itself = attention_alone(token[None])[0]
    print(f"token ({token[0]:+.0f}, {token[1]:+.0f}): XOR {token.prod():+.0f}, among all four {value:+.3f}, "
          f"by itself {by_itself:+.0f}")
print(f"attention and the two tanh units differ by {abs(together - hidden).max():.0e}")
