# %% [markdown]
# # Lesson 9: A sentence as a polygon
#
# Give each token two features, and a sentence is a handful of points in the plane: a polygon with the tokens as its
# vertices. Then one can *see* what a layer does. Attention, left to itself, shrinks the polygon to a point, and very
# fast. This lesson watches it happen, in both directions of the computation, and then finds out which parts of a
# Transformer prevent it.
#
# **Afterwards you know** how fast attention alone draws all tokens into one point, that the gradient fades with them,
# and which parts of a layer prevent it.
#
# ## One layer
#
# Seven words. W_V is the identity, and so are W_Q and W_K. The scores are multiplied by 3/2, which makes the softmax
# somewhat sharper.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull

from minigrad import Tensor
from minigrad import functional as F

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)

WORDS = ["I", "read", "a", "good", "book", "every", "night"]
SENTENCE = np.array([[1.6, 0.5], [0.7, 1.0], [-0.2, 1.1], [-0.6, 0.3], [-0.5, -0.7], [0.4, -0.75], [1.4, -0.55]])


def attend(x: Tensor) -> Tensor:
    """Self-attention with W_Q = W_K = W_V = 1: (T, 2) → (T, 2)."""
    return F.scaled_dot_product_attention(x, x, x, scale=1.5)


def outside(points: np.ndarray, polygon: np.ndarray) -> float:
    """How far the farthest of the points lies outside the hull of the polygon; negative if all are inside."""
    normals, offsets = np.split(ConvexHull(polygon).equations, [2], axis=1)  # n·x + offset ≤ 0 inside
    return float((points @ normals.T + offsets.T).max())


moved = attend(Tensor(SENTENCE)).numpy()
for word, before, after in zip(WORDS, SENTENCE, moved, strict=True):
    print(f"{word:>5}: ({before[0]:5.2f}, {before[1]:5.2f}) → ({after[0]:5.2f}, {after[1]:5.2f})")
print(f"area of the hull {ConvexHull(SENTENCE).volume:.2f} → {ConvexHull(moved).volume:.2f}; "
      f"the vertex nearest to the old edge is {-outside(moved, SENTENCE):.2f} inside")

# %% [markdown]
# The area of the hull fell from 3.23 to 1.35. Every vertex moved to a *convex combination* of the old ones: weights
# that are not negative and sum to one. Such a point lies inside their hull. That holds for any W_Q and W_K, so the hull
# of the new polygon is inside the old one, always, and its area can only fall. Softmax never gives a weight of exactly
# zero, so no vertex can stay, and it does fall.
#
# ## Stack layers
#
# Now send the result through the same layer again, and again. To measure what is left we take the *relative spread*:
# the distance of the tokens from their mean, compared with their size, ‖X − mean‖/‖X‖. It is 1 for a polygon around the
# origin, and 0 when all tokens are one point. Then X has rank one: the sentence has become one word, seven times.

# %%
Layer = Callable[[Tensor], Tensor]


def stack(layer: Layer, depth: int, sentence: np.ndarray = SENTENCE) -> list[np.ndarray]:
    """The sentence before the first and after each of `depth` layers."""
    states = [Tensor(sentence)]
    for _ in range(depth):
        states.append(layer(states[-1]))
    return [state.numpy() for state in states]


def spread(x: np.ndarray) -> float:
    """‖X − mean‖ / ‖X‖."""
    return float(np.linalg.norm(x - x.mean(axis=0)) / np.linalg.norm(x))


for depth, state in enumerate(stack(attend, 5)):
    print(f"after {depth} layers: relative spread {spread(state):.1e}")

# %% [markdown]
# Not a steady decay: it goes faster and faster. Let the tokens be nearly alike, at distances of order ε from each
# other. All queries are nearly alike, so all rows of A are, up to ε·ε: the first ε because queries differ, the second
# because keys do. Each row averages values that themselves differ by ε. So the outputs differ by ε³. Shrink the polygon
# to a tenth, and what leaves the layer shrinks to a thousandth:

# %%
middle = SENTENCE.mean(axis=0)
sizes = [1e-1, 1e-2, 1e-3]
left = []
for size in sizes:
    result = attend(Tensor(middle + size * (SENTENCE - middle))).numpy()
    left.append(np.linalg.norm(result - result.mean(axis=0)))
    print(f"polygon shrunk by {size:.0e}: spread after the layer {left[-1]:.1e}")
print(f"the power is {np.log10(left[1] / left[2]):.2f}")

# %% [markdown]
# Dong, Cordonnier and Loukas ("Attention is not all you need", 2021, arXiv:2103.03404) prove it for stacks of any
# number of heads: unless the weights are large, what attention alone gives comes to rank one *doubly* exponentially in
# the depth. They also show what works against it: residual paths and feed-forward nets.
#
# ## The same, backwards
#
# What the forward pass merges, the backward pass cannot tell apart. Take as loss the difference of the first two tokens
# after L layers, and ask for its gradient at the input. If the tokens have collapsed, no change of the input makes a
# difference to the difference.

# %%
def gradient_of_difference(layer: Layer, depth: int) -> float:
    """The norm of the gradient of (token 0 − token 1) after `depth` layers with respect to the sentence."""
    x = sentence = Tensor(SENTENCE, requires_grad=True)
    for _ in range(depth):
        x = layer(x)
    (x[0] - x[1]).sum().backward()
    return float(np.linalg.norm(sentence.grad.numpy()))


for depth in range(1, 6):
    print(f"{depth} layers: attention alone {gradient_of_difference(attend, depth):.1e}, "
          f"with a residual path {gradient_of_difference(lambda x: x + attend(x), depth):.1e}")

# %% [markdown]
# ## What holds the polygon open
#
# Four parts of a Transformer, each apart, then together:
#
# - **W_V**: three times the identity. Vertices may leave the hull now.
# - **norm**: each token is divided by its root mean square, so it lies on a circle. (A *layer* norm in two dimensions
#   would leave two points: subtract the mean of two numbers, and what remains is (a, −a), then scaled to ±1.)
# - **feed-forward**: two ReLUs for each feature, clip(4x, −1, 1). It pushes apart what is left and right of zero.
# - **residual**: x + attend(x). Each token keeps itself.
# - **together**: norm, attention, residual; norm, feed-forward, residual. An encoder layer.

# %%
def norm(x: Tensor) -> Tensor:
    """Onto the circle of radius √2."""
    return F.rms_norm(x)


def feed_forward(x: Tensor) -> Tensor:
    """clip(4x, −1, 1), made of ReLUs."""
    return F.relu(4 * x + 1) - F.relu(4 * x - 1) - 1


def together(x: Tensor) -> Tensor:
    """The pre-norm encoder layer."""
    y = x + attend(norm(x))
    return y + feed_forward(norm(y))


LAYERS: dict[str, Layer] = {
    "attention alone": attend,
    "W_V": lambda x: 3 * attend(x),
    "norm": lambda x: norm(attend(x)),
    "feed-forward": lambda x: feed_forward(attend(x)),
    "residual": lambda x: x + attend(x),
    "together": together,
}


def apart(x: np.ndarray) -> int:
    """How many tokens are left when those closer than a hundredth of the whole count as one."""
    distances = np.linalg.norm(x[:, None] - x, axis=-1) / abs(x).max()
    return sum(not (distances[t, :t] < 0.01).any() for t in range(len(x)))


SHOWN = [0, 1, 2, 4, 8, 16]
stacks = {name: stack(layer, 32) for name, layer in LAYERS.items()}
print("relative spread after", *(f"{depth:>7}" for depth in (*SHOWN, 32)), "  layers; tokens apart at the end")
for name, states in stacks.items():
    print(f"{name:21}", *(f"{spread(states[depth]):7.1e}" for depth in (*SHOWN, 32)), f"  {apart(states[-1])}")
print(f"W_V: the farthest vertex is {outside(3 * moved, SENTENCE):.2f} outside the hull after one layer")

# %% [markdown]
# The parts do different things. W_V and the norm only *delay* the collapse here: they make the polygon larger again,
# but a larger polygon of nearly equal tokens is still one of nearly equal tokens. (With sharper scores both can stop at
# two or three groups. Try scale=2.) The feed-forward and the residual path *stop* it: a few groups remain. Together,
# all seven words are still apart after 32 layers, though in the picture you see them gather slowly in the corners.

# %%
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000"]


def draw(axes: Axes, x: np.ndarray) -> None:
    """The polygon and its vertices."""
    axes.fill(*x.T, facecolor="#0072B2", alpha=0.12)
    axes.plot(*np.vstack([x, x[:1]]).T, color="0.6", linewidth=0.8)
    axes.scatter(*x.T, c=COLOURS, s=22, zorder=3)
    axes.set(aspect="equal", xticks=[], yticks=[])


figure = Figure(figsize=(9, 9.6), layout="constrained")
rows = figure.subplots(len(LAYERS), len(SHOWN))
for row, (name, states) in zip(rows, stacks.items(), strict=True):
    row[0].set_ylabel(name)
    for axes, depth in zip(row, SHOWN, strict=True):
        size = abs(states[depth]).max()
        draw(axes, states[depth] / size)
        axes.plot(0, 0, "+", color="0.5")
        axes.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25))
        axes.set_xlabel(f"÷ {size:.3g}", fontsize=8, labelpad=1)
for axes, depth in zip(rows[0], SHOWN, strict=True):
    axes.set_title(f"layer {depth}" if depth else "the sentence")
figure.suptitle("Feature 0 to the right, feature 1 upwards; each polygon divided by its largest coordinate;\n"
                "the cross is the origin, a colour is a token", fontsize=10)
figure.savefig(PICTURES / "09_a_sentence_as_a_polygon.png", dpi=90)
figure

# %% [markdown]
# And as a film, `runs/lessons/09_a_sentence_as_a_polygon.gif`: left attention alone, each polygon inside the one
# before; right the whole layer.

# %%
film = Figure(figsize=(7.2, 3.9))
panels = film.subplots(1, 2, gridspec_kw={"left": 0.05, "right": 0.99, "bottom": 0.08, "top": 0.92, "wspace": 0.1})
shown = [("attention alone", 0.4, stacks["attention alone"]),  # title, middle of the panel, states
         ("the whole layer, scaled to fit", 0.0, [state / abs(state).max() * 1.5 for state in stacks["together"]])]
STEPS, DEPTH = 6, 6  # pictures from one layer to the next, layers


def frame(number: int) -> None:
    """One picture of the film: between two layers the vertices move on straight lines."""
    depth, part = divmod(min(number, STEPS * DEPTH), STEPS)
    for axes, (title, middle, states) in zip(panels, shown, strict=True):
        axes.clear()
        if title == "attention alone":
            for earlier in states[:depth + 1]:
                axes.plot(*np.vstack([earlier, earlier[:1]]).T, color="0.8", linewidth=0.8)
        draw(axes, states[depth] + part / STEPS * (states[depth + 1] - states[depth]))
        axes.set(title=title, xlabel="feature 0", ylabel="feature 1")
        axes.set(xlim=(middle - 1.8, middle + 1.8), ylim=(-1.8, 1.8))
        axes.text(middle - 1.7, -1.7, f"layer {depth}")
        if number == 0:
            for word, place in zip(WORDS, states[0], strict=True):
                axes.annotate(word, place, (4, 5), textcoords="offset points")


FuncAnimation(film, frame, frames=STEPS * DEPTH + 8).save(
    PICTURES / "09_a_sentence_as_a_polygon.gif", PillowWriter(fps=8), dpi=90)

# %% [markdown]
# ## A question
#
# Let the second word be "I" as well, so that tokens 0 and 1 are the same point. Which of the four parts can pull them
# apart again? All of them together, sixteen layers deep?

# %% [markdown]
# ## The answer
#
# None, and not all together. Equal tokens ask equal queries, get equal averages, and go through equal norms and
# feed-forward nets. Whatever the weights, what goes in equal comes out equal (but for rounding). Training cannot help
# either: it changes weights.
#
# So the stack can keep differences, and even widen them, but never make one. Two equal words in a sentence differ by
# their places alone. That difference must be put in before the first layer: by positions (lesson 6).

# %%
twice = SENTENCE.copy()
twice[1] = twice[0]
for name, layer in LAYERS.items():
    x = stack(layer, 16, twice)[-1]
    print(f"{name:16} distance of tokens 0 and 1 after 16 layers: {abs(x[0] - x[1]).max():.0e}")
