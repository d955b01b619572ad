# %% [markdown]
# # Lesson 1: A derivative by hand
#
# A network learns by asking one question of each of its numbers: *if I make this number a little larger, does the
# loss grow or shrink, and how fast?* The answer is a derivative. This lesson works it out for one neuron, first with
# paper and the chain rule, then with the engine, and shows that the two do the same thing.
#
# **Afterwards you know** why one walk backwards gives the slopes of all weights, which numbers of the forward pass it
# needs, and why a saturated neuron hardly learns.
#
# The neuron takes one input x, multiplies it by a weight w, adds a bias b, and squeezes the result between −1 and 1:
#
# $$z = w x + b, \qquad y = \tanh(z), \qquad L = (y - t)^2$$
#
# The loss L says how far y is from the target t. Only w and b are ours to change.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
import math
from importlib.util import find_spec
from pathlib import Path

from matplotlib.figure import Figure

import minigrad as mg
from minigrad import Tensor, inspect

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)

x, t = 1.5, 1.0
w, b = 0.8, -0.7

z = w * x + b
y = math.tanh(z)
loss = (y - t) ** 2
print(f"z = {z:.4f}, y = {y:.4f}, L = {loss:.4f}")

# %% [markdown]
# ## What a derivative claims
#
# The derivative of L with respect to w is the slope of L as w moves and everything else stays. We can simply try it:
# move w by a tiny step to either side and look at what L does. This is a *finite difference*. It needs two runs of
# the network for every weight, so nobody trains with it. But it needs no thinking, so it is the judge of all that
# follows.

# %%
def loss_at(w: float, b: float) -> float:
    """The loss of the neuron, from the start."""
    return (math.tanh(w * x + b) - t) ** 2


step = 1e-6
tried_w = (loss_at(w + step, b) - loss_at(w - step, b)) / (2 * step)
tried_b = (loss_at(w, b + step) - loss_at(w, b - step)) / (2 * step)
print(f"tried: dL/dw = {tried_w:.4f}, dL/db = {tried_b:.4f}")

# %% [markdown]
# ## The chain rule
#
# L depends on w only through z, and on z only through y. Slopes along such a chain multiply: if y moves twice as fast
# as z, and L three times as fast as y, then L moves six times as fast as z. So we need the slope of each link alone,
# and each is easy:
#
# $$\frac{dL}{dy} = 2(y - t), \qquad \frac{dy}{dz} = 1 - y^2, \qquad \frac{dz}{dw} = x, \qquad \frac{dz}{db} = 1$$
#
# We begin at the loss and walk back, with one running product. We write dz for dL/dz, as all lessons do: *d and a
# name is the gradient of the loss with respect to that name.*

# %%
dy = 2 * (y - t)        # forward: L = (y − t)²   so here: dy = 2(y − t)
dz = dy * (1 - y * y)   # forward: y = tanh(z)    so here: dz = dy · (1 − y²)
dw = dz * x             # forward: z = w·x + b    so here: dw = dz · x
db = dz                 #                         and here: db = dz
dx = dz * w             #                         and here: dx = dz · w
print(f"by hand: dy = {dy:.4f}, dz = {dz:.4f}, dw = {dw:.4f}, db = {db:.4f}, dx = {dx:.4f}")
print(f"hand and trial differ by {abs(dw - tried_w):.0e} and {abs(db - tried_b):.0e}")

# %% [markdown]
# Two things to notice. The slopes are made of numbers from the forward pass: y for the tanh, x and w for the product.
# And dz was computed once and used three times: walking *backwards* from the single loss, every further slope costs
# one more multiplication. Walking forwards, from w or from b, we would have to start again for each.
#
# ## The tape
#
# An engine of automatic differentiation does exactly what we just did. While the forward pass runs, it writes each
# operation on a *tape*, along with the numbers its slope will need. `backward()` reads the tape from its end. Here it
# is:

# %%
with inspect.record_tape() as tape:
    X, W, B = (Tensor(value, dtype="float64", requires_grad=True) for value in (x, w, b))
    Z = W * X + B
    Y = mg.tanh(Z)
    L = (Y - t) ** 2
    L.backward()
print(tape)

# %% [markdown]
# The last operation comes first. The column *saved* holds what each slope needs and nothing else: tanh keeps its own
# output, because 1 − y² is made of y; the product keeps both factors; a sum keeps nothing. The column *|gradient|*
# holds the running product that arrives at each operation, without its sign: find our dy at `tanh`, and our dz at
# `add`.

# %%
for name, tensor, mine in [("dw", W, dw), ("db", B, db), ("dx", X, dx)]:
    print(f"{name}: engine {float(tensor.grad):.4f}, hand {mine:.4f}, difference {abs(float(tensor.grad) - mine):.0e}")
if find_spec("pygraphviz"):  # it comes with the extra 'draw'
    inspect.draw(tape).save(PICTURES / "01_tape.svg")  # the same tape as a drawing: open it in a browser

# %% [markdown]
# ## Two paths add
#
# What if a number is used twice? Let us punish large weights, and add w²/10 to the loss. Now w reaches L by two
# paths, and moving w moves L along both at once, so the slopes of the paths *add*. That is all the branching there
# is: **along a path multiply, over paths add.** In attention, one word goes into queries, keys and values: three
# paths, one sum.

# %%
W2 = Tensor(w, dtype="float64", requires_grad=True)
((mg.tanh(W2 * x + b) - t) ** 2 + W2 * W2 / 10).backward()
print(f"through the neuron {dw:.4f}, through w²/10 {2 * w / 10:.4f}, sum {dw + 2 * w / 10:.4f}, "
      f"engine {float(W2.grad):.4f}")

# %% [markdown]
# ## Downhill
#
# dw is negative: a larger w makes the loss smaller. So we step against the gradient, a little, and again. That is
# training. The picture shows the loss for every w, with our slope as the tangent, and where the steps lead; beside it
# stand the values of the forward pass, above each circle, and the gradients of the backward pass, below it.

# %%
path = [w]
for _ in range(8):
    v = math.tanh(path[-1] * x + b)
    path.append(path[-1] - 0.4 * 2 * (v - t) * (1 - v * v) * x)  # the chain rule in one line
print(f"loss before {loss_at(path[0], b):.4f}, after one step {loss_at(path[1], b):.4f}, "
      f"after eight {loss_at(path[-1], b):.4f}")

# %%
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
figure = Figure(figsize=(9, 3.8), layout="constrained")
chain, hill = figure.subplots(1, 2, width_ratios=[1.15, 1])

places = [("w", 0, 2, w, dw), ("x", 0, 0, x, dx), ("wx", 1, 1, w * x, dz), ("b", 1, -1, b, db),
          ("z", 2, 0, z, dz), ("y", 3, 0, y, dy), ("L", 4, 0, loss, 1.0)]
at = {name: (column, row) for name, column, row, _, _ in places}
for start, end in [("w", "wx"), ("x", "wx"), ("wx", "z"), ("b", "z"), ("z", "y"), ("y", "L")]:
    chain.annotate("", at[end], at[start], arrowprops={"arrowstyle": "->", "color": GREY, "shrinkA": 18, "shrinkB": 18})
for name, column, row, value, gradient in places:
    chain.plot(column, row, "o", markersize=26, markerfacecolor="white", markeredgecolor=GREY)
    chain.text(column, row, name, ha="center", va="center", fontsize=12)
    chain.text(column, row + 0.42, f"{value:.3f}", ha="center", va="bottom", color=BLUE)
    chain.text(column, row - 0.42, f"{gradient:.3f}", ha="center", va="top", color=ORANGE)
chain.set(xlim=(-0.6, 4.6), ylim=(-2.1, 3.0), title="values (above) and gradients dL/d· (below)")
chain.set_axis_off()

grid = [-4.4 + 0.05 * i for i in range(149)]
hill.plot(grid, [loss_at(v, b) for v in grid], color=BLUE, label="loss L(w)")
near = [w - 0.5, w + 0.5]
hill.plot(near, [loss + dw * (v - w) for v in near], color=ORANGE, linewidth=2.5, label=f"slope −{-dw:.2f} at w = 0.8")
hill.plot(path, [loss_at(v, b) for v in path], "o", color=GREY, markersize=5, label="eight steps downhill")
hill.set(xlabel="w", ylabel="loss", ylim=(-0.1, 4.3), title="the loss for every w", xticks=range(-4, 4))
hill.legend(frameon=False, loc="center left", fontsize=9)
hill.grid(alpha=0.3)
figure.savefig(PICTURES / "01_a_derivative_by_hand.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# Start the same neuron at w = −4 instead of 0.8. It says −1 where the target is 1: it could hardly be more wrong, and
# L is nearly 4, the worst it can be. Look at the left end of the curve, then say: will it learn faster from there, or
# slower?

# %% [markdown]
# ## The answer
#
# Far slower. The loss sends a large gradient, about −4. But on the way to w it must pass through the tanh, whose
# slope 1 − y² is nearly 0 there: the neuron is *saturated*. The chain is a product, and one small factor kills it.
# The first step from 0.8 moves w by 0.50762, the first step from −4 by 0.00001, and it takes more than twenty thousand
# of them to get off the plateau.
#
# Softmax, at the heart of attention, saturates in the same way. That is the next lesson.

# %%
for start in (0.8, -4.0):
    v = math.tanh(start * x + b)
    arrives, passes = 2 * (v - t), 1 - v * v
    print(f"w = {start}: L = {loss_at(start, b):.4f}, dy = {arrives:.4f}, slope of tanh {passes:.1e}, "
          f"dw = {arrives * passes * x:.1e}, step {0.4 * abs(arrives * passes * x):.5f}")

    steps, v = 0, start
    while loss_at(v, b) > 0.1:
        y = math.tanh(v * x + b)
        v -= 0.4 * 2 * (y - t) * (1 - y * y) * x
        steps += 1
    print(f"    the loss is below 0.1 after {steps:,} steps")
