# %% [markdown]
# # Lesson 8: Heads
#
# A Transformer never attends just once. It splits the features into H parts, attends in each part by itself, puts the
# results side by side and mixes them: *multi-head attention*. This lesson takes the four steps one at a time, shows
# that they are one sum, finds what two heads can do that one cannot, and follows the gradient back through the split.
#
# **Afterwards you know** how a layer is the sum of its heads, what two heads can do that one cannot, and what the
# gradient does at the split.
#
# ## Split
#
# Five tokens of D = 6 features, and H = 2 heads, so each head has d_k = 3. Queries for both heads come from *one*
# product, X·W_Q. Head 1 takes its first three columns, head 2 the other three. As arrays, the split is a reshape and a
# swap of axes: nothing is computed.

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

import minigrad as mg
from minigrad import Tensor, nn, no_grad, optim
from minigrad import functional as F
from minigrad.functional.attention import split_heads

from transformer import trace
from transformer.model import MultiHeadAttention

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)
UPDATES = int(os.environ.get("LESSON_UPDATES", "600"))

T, D, H = 5, 6, 2
mg.manual_seed(8)
rng = np.random.default_rng(8)
attention = MultiHeadAttention(D, H, bias=False).to(dtype="float64")
X = rng.normal(size=(T, D))
W_Q, W_K, W_V, W_O = (linear.weight.numpy().T for linear in
                      (attention.query, attention.key, attention.value, attention.output))  # (out, in) → (in, out)
columns = [slice(0, 3), slice(3, 6)]  # of head 1, of head 2

split = split_heads(Tensor((X @ W_Q)[None]), H)  # (1, T, D) → (1, H, T, D/H)
print("queries", (X @ W_Q).shape, "split into", split.shape)
for h in range(H):
    own = X @ W_Q[:, columns[h]]
    gap = abs(split.numpy()[0, h] - own).max()
    print(f"head {h + 1}: X times its columns of W_Q is {own.shape}, and differs by {gap:.0e}")

# %% [markdown]
# ## Attend, concatenate, project
#
# Each head now does what lesson 3 did, with scores over √d_k = √3. The outputs O₁ and O₂, each 5×3, stand side by side
# in C, which is 5×6 again, and W_O mixes them. The package does the same.

# %%
weights, context = [], []
for h in range(H):
    Q_h, K_h, V_h = (X @ W[:, columns[h]] for W in (W_Q, W_K, W_V))
    weights.append(F.softmax(Tensor(Q_h @ K_h.T / np.sqrt(D // H)), axis=-1).numpy())
    context.append(weights[h] @ V_h)
C = np.concatenate(context, axis=1)
Y = C @ W_O
X_tensor = Tensor(X[None], requires_grad=True)  # a batch of one
print(f"by hand and by the package: {abs(Y - attention(X_tensor, X_tensor, X_tensor).numpy()[0]).max():.0e}")

# %% [markdown]
# ## The same as one sum
#
# "Side by side, times W_O" is a product of blocks: the three columns of O₁ meet the first three rows of W_O, those of
# O₂ the other three. So nothing is really mixed. Each head has its own piece of W_O, and the pieces are *added*:
#
# $$Y = \sum_h O_h W_{O,h} = \sum_h A_h X \underbrace{W_{V,h} W_{O,h}}_{M_h}$$
#
# A head is a pair: the weights A_h say *from which tokens*, the matrix M_h says *what to carry over*. M_h is 6×6, but
# made of 6×3 times 3×6: its rank is 3, so a head carries three numbers and drops the rest. Likewise its scores need W_Q
# and W_K only in the product W_Q,h·W_K,hᵀ, also of rank 3.
#
# And because Y is linear in X for given weights, the whole layer is *one big matrix* on all 30 numbers of X in a row:
# the sum of the Kronecker products A_h ⊗ M_hᵀ. Block (t, s) of it is what token t takes from token s: Σ_h A_h[t,
# s]·M_hᵀ.

# %%
M = [W_V[:, columns[h]] @ W_O[columns[h]] for h in range(H)]
as_sum = sum(weights[h] @ X @ M[h] for h in range(H))
big = sum(np.kron(weights[h], M[h].T) for h in range(H))
scores = [X @ (W_Q[:, columns[h]] @ W_K[:, columns[h]].T) @ X.T for h in range(H)]
by_product = [F.softmax(Tensor(score / np.sqrt(D // H)), axis=-1).numpy() for score in scores]
print(f"the weights from the products W_Q,h·W_K,hᵀ differ by {abs(np.stack(by_product) - weights).max():.0e}")
print(f"the sum over heads differs by {abs(Y - as_sum).max():.0e}")
print(f"the big matrix {big.shape} differs by {abs(Y.ravel() - big @ X.ravel()).max():.0e}")
print("ranks of M₀, M₁ and M₀ + M₁:", *(np.linalg.matrix_rank(m) for m in (*M, M[0] + M[1])))

# %% [markdown]
# ## What several heads can
#
# With one head, what token t takes from any token s is A[t, s]·M: always the same matrix M, with a factor that is never
# negative. So try a task that treats two tokens differently: *what stood before me, minus what stands after me*, x₍ₜ₋₁₎
# − x₍ₜ₊₁₎, around a circle of eight tokens. It needs M for one neighbour and −M for the other. A head that looks at
# positions can fetch one of them; then it misses the other, whose variance is 1. Or it fetches the mean of both, and
# that says nothing of their difference. Two heads can do it: one for each.
#
# We train both. They have the same number of parameters: the same 16 features, cut into one piece or into two.

# %%
LENGTH, WIDTH = 8, 16


class Neighbours(nn.Module):
    """An attention of `num_heads` heads over tokens of four features with learned positions."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.embed, self.positions = nn.Linear(4, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.attention, self.read = MultiHeadAttention(WIDTH, num_heads), nn.Linear(WIDTH, 4)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, 4) → (B, T, 4) and the weights (B, H, T, T)."""
        x = self.embed(tokens) + self.positions(np.arange(LENGTH))
        y, weights = self.attention(x, x, x, return_weights=True)
        return self.read(y), weights


def circles(rng: np.random.Generator, count: int) -> tuple[Tensor, Tensor]:
    """Random tokens (count, T, 4) and, for each, the token before it minus the one after it."""
    tokens = rng.normal(size=(count, LENGTH, 4)).astype("float32")
    return Tensor(tokens), Tensor(np.roll(tokens, 1, axis=1) - np.roll(tokens, -1, axis=1))


def train(num_heads: int, updates: int) -> tuple[float, np.ndarray]:
    """The mean squared error on unseen tokens after `updates` of Adam, and the mean weights (H, T, T)."""
    mg.manual_seed(0)
    rng = np.random.default_rng(0)
    model = Neighbours(num_heads)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(updates):
        tokens, differences = circles(rng, 32)
        loss = F.mse_loss(model(tokens)[0], differences)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    tokens, differences = circles(rng, 1000)
    with no_grad():
        found, weights = model(tokens)
    return float(F.mse_loss(found, differences)), weights.numpy().mean(axis=0)


learnt = {}
for num_heads in (1, 2):
    error, learnt[num_heads] = train(num_heads, UPDATES)
    count = sum(p.size for p in MultiHeadAttention(WIDTH, num_heads).parameters())
    print(f"{num_heads} head(s), {count} parameters: mean squared error {error:.4f} (saying nothing: 2)")

# %% [markdown]
# One head stays at 1, half of the task. Two heads solve it. The picture shows, above, the big matrix of our five tokens
# as the sum of its heads, and below, where the trained heads look: a head for each direction.

# %%
figure = Figure(figsize=(9, 6.6), layout="constrained")
above, below = figure.subfigures(2, 1)
limit = 0.5 * abs(big).max()  # the largest entries share the darkest colour
panels = above.subplots(1, 3)
for axes, matrix, title in zip(panels, (*(np.kron(weights[h], M[h].T) for h in range(H)), big),
                               ("A₀ ⊗ M₀ᵀ", "+   A₁ ⊗ M₁ᵀ", "=   the layer"), strict=True):
    drawn = axes.imshow(matrix, cmap="PuOr_r", vmin=-limit, vmax=limit, extent=(-0.5, T - 0.5, T - 0.5, -0.5))
    axes.set(title=title, xlabel="from token", ylabel="to token", xticks=range(T), yticks=range(T))
    for edge in range(1, T):
        axes.axhline(edge - 0.5, color="0.6", linewidth=0.8)
        axes.axvline(edge - 0.5, color="0.6", linewidth=0.8)
above.colorbar(drawn, ax=panels, label="entry", extend="both", shrink=0.9)
panels = below.subplots(1, 3)
titles = ("one head", "two heads: head 1", "two heads: head 2")
for axes, matrix, title in zip(panels, (*learnt[1], *learnt[2]), titles, strict=True):
    drawn = axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
    axes.set(title=title, xlabel="key", ylabel="query", xticks=range(LENGTH), yticks=range(LENGTH))
below.colorbar(drawn, ax=panels, label="weight A", shrink=0.9)
figure.savefig(PICTURES / "08_heads.png", dpi=100)
figure

# %% [markdown]
# ## Back through the heads
#
# Concatenation and split only move numbers, so their backward only moves them back. Let G = dY.
#
# - forward: Y = C·W_O, so here: dC = G·W_Oᵀ.
# - forward: C = O₁ and O₂ side by side, so here: *cut* dC; dO_h is the columns of head h, which is G·W_O,hᵀ.
# - forward: Q was cut into Q₁ and Q₂, so here: put dQ₁ and dQ₂ *side by side*, and dW_Q = Xᵀ·dQ.
# - forward: all heads read the same X, so here: *add* what comes back from each.
#
# In between, the heads know nothing of each other. `transformer.trace` shows the engine's own numbers.

# %%
G = rng.normal(size=(T, D))
with trace(attention) as t:
    out = attention(X_tensor, X_tensor, X_tensor)
    (out * Tensor(G[None])).sum().backward()
step = t["MultiHeadAttention"]
heads = [step.head(item=0, head=h).gradients for h in range(H)]
dC = G @ W_O.T
dQ, dK, dV = (np.concatenate([head[name] for head in heads], axis=1) for name in "QKV")
by_head = [head["Q"] @ W_Q[:, c].T + head["K"] @ W_K[:, c].T + head["V"] @ W_V[:, c].T
           for head, c in zip(heads, columns, strict=True)]
print(f"dO_h is a cut of dC: {max(abs(heads[h]['O'] - dC[:, columns[h]]).max() for h in range(H)):.0e}")
print(f"dW_Q is Xᵀ·dQ, side by side: {abs(X.T @ dQ - attention.query.weight.grad.numpy().T).max():.0e}")
print(f"dX is the sum over heads: {abs(sum(by_head) - X_tensor.grad.numpy()[0]).max():.0e}")

# %% [markdown]
# ## A question
#
# Switch head 2 off: set its three rows of W_O to zero, so that it adds nothing to Y. Which of its weights still receive
# a gradient? Will training ever switch it on again? And what if its columns of W_V are zero as well?

# %% [markdown]
# ## The answer
#
# dO₂ = G·W_O,2ᵀ is zero, so nothing passes into the head: W_Q, W_K and W_V get no gradient there. But its rows of W_O
# do: they get O₂ᵀG, and O₂ is alive. After one update of W_O the gradient flows again. (Layers are sometimes begun like
# this on purpose: they start by doing nothing.)
#
# With W_V zero as well, O₂ is zero, and so is O₂ᵀG: of a product of two zeros neither factor has a slope. That head is
# dead for good. Start at most one factor of a product at zero.

# %%
def gradients_of_head_2() -> dict[str, float]:
    """The norms of the gradients of head 2's share of each matrix."""
    attention.zero_grad()
    (attention(X_tensor, X_tensor, X_tensor) * Tensor(G[None])).sum().backward()
    share = {name: getattr(attention, name).weight.grad.numpy()[columns[1]] for name in ("query", "key", "value")}
    share["output"] = attention.output.weight.grad.numpy()[:, columns[1]]
    return {name: float(np.linalg.norm(gradient)) for name, gradient in share.items()}


def show(state: str) -> None:
    """Print those norms."""
    print(f"{state:20}", "  ".join(f"d{name} {norm:.3f}" for name, norm in gradients_of_head_2().items()))


show("as it was")
attention.output.weight[:, columns[1]] = 0.0
show("W_O,2 = 0")
optim.SGD([attention.output.weight], lr=0.1).step()
show("after one update")
attention.output.weight[:, columns[1]] = 0.0
attention.value.weight[columns[1]] = 0.0
show("W_V,2 = 0 as well")
