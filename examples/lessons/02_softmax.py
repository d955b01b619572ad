# %% [markdown]
# # Lesson 2: Softmax and its Jacobian
#
# Attention turns scores into shares. A word gives every other word a score, any real number, and softmax makes of the
# scores weights that are positive and sum to 1:
#
# $$a_i = \frac{e^{x_i}}{\sum_k e^{x_k}}$$
#
# It is one line of code. But every gradient that teaches a Transformer *where to look* passes backwards through this
# line, so it pays to know what happens to it there. We take four scores and look.
#
# **Afterwards you know** the Jacobian of softmax and its backward pass in one line, why a softmax that has made up
# its mind lets hardly any gradient through, and why cross-entropy does not suffer from it.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)


def softmax(x: np.ndarray) -> np.ndarray:
    """Along the last axis. Taking the largest score off first changes nothing, and keeps exp from overflowing."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


x = np.array([12.0, 8.0, -1.0, 19.0])
a = softmax(x)
for score, weight in zip(x, a, strict=True):
    print(f"score {score:4.0f}   weight {weight:.10f}")

# %% [markdown]
# The largest score, 19, takes 99.907 % of everything. Yet 19 does not look so much larger than 12. Why is there
# almost nothing left?
#
# Because softmax sees *differences* only, and sees them through the exponential. The ratio of two weights is $a_i /
# a_j = e^{x_i - x_j}$. A lead of 1 is a factor of 2.7; a lead of 7, from 12 to 19, is a factor of 1097; the lead of
# 20 over the score −1 is a factor of half a billion. Add 100 to all the scores, and nothing changes at all.

# %%
print(f"19 against 12: a factor of {a[3] / a[0]:.1f} = e^7, which leaves {100 * a[3]:.3f} % to the largest")
print(f"one more is a factor of {np.e:.1f}; 19 against -1: {a[3] / a[2]:.2e}")
print(f"all scores 100 higher: the weights differ by {np.abs(softmax(x + 100) - a).max():.0e}")

# %% [markdown]
# So these weights are nearly *one-hot*: softmax has made up its mind. That is often what we want in the end. The
# question is what it does to learning.
#
# ## The Jacobian
#
# Four scores go in and four weights come out, and each weight depends on every score. So the derivative is not a
# number but a table of 4 × 4: row i, column j says how fast weight i moves as score j moves. That is the *Jacobian*
# J. To find it, take the logarithm first, which turns the quotient into a difference:
#
# $$\log a_i = x_i - \log \sum_k e^{x_k}
# \quad\Rightarrow\quad \frac{1}{a_i}\frac{\partial a_i}{\partial x_j} = \delta_{ij} - a_j \quad\Rightarrow\quad
# J_{ij} = a_i(\delta_{ij} - a_j)$$
#
# with δ = 1 where i = j and 0 elsewhere. As matrices: **J = diag(a) − a aᵀ**. We check it against the engine, which
# knows nothing of our formula's table, and against finite differences, which know nothing at all.

# %%
J = np.diag(a) - np.outer(a, a)
by_engine = mg.func.jacobian(F.softmax)(Tensor(x)).numpy()
step = 1e-5
tried = np.stack([(softmax(x + step * e) - softmax(x - step * e)) / (2 * step) for e in np.eye(4)], axis=1)
print(np.array2string(J, formatter={"float": lambda v: f"{v:10.2e}"}))
print(f"formula against engine {np.abs(J - by_engine).max():.0e}, "
      f"against finite differences {np.abs(J - tried).max():.0e}")

# %% [markdown]
# Three facts can be read off, whatever the scores are:
#
# - J is symmetric, and each row (and each column) sums to 0: what one weight wins, the others lose.
# - On the diagonal stands a(1 − a), at most a quarter, and 0 where a is 0 *or 1*. So a weight can move only while
#   it is undecided.
# - Nearly one-hot weights mean that J is nearly zero, everywhere. Its largest entry here is 0.00093.

# %%
print(f"J - Jᵀ: {np.abs(J - J.T).max():.0e}; sums of the rows: {np.abs(J.sum(axis=1)).max():.0e}; "
      f"largest entry {J.max():.5f}")

# %% [markdown]
# ## The backward pass in one line
#
# From above comes a gradient da, one number per weight. The chain rule says: multiply by the table, dx = J da. But
# nobody builds the table. For a row of 1,000 words it would have a million entries, and it is made of a alone:
#
# $$dx = \mathrm{diag}(a)\,da - a\,(a^\top da) = a \circ (da - D), \qquad D = \sum_k a_k\, da_k$$
#
# Read it aloud: **D is the average of da, weighted by a. A score whose da lies above the average gets a positive
# gradient, one below it a negative one, and each in proportion to its own weight.** Training goes against the
# gradient: it raises the scores whose weight would lower the loss *more than the average does*.

# %%
da = np.array([-1.0, 0.5, 0.0, 0.3])  # more weight on the first word would lower the loss
D = (a * da).sum()
dx = a * (da - D)

scores = Tensor(x, requires_grad=True)
(F.softmax(scores) * da).sum().backward()
print("dx by hand:  ", np.array2string(dx, formatter={"float": lambda v: f"{v:11.3e}"}), f"  sum {dx.sum():.0e}")
print(f"J·da differs by {np.abs(J @ da - dx).max():.0e}, the engine by {np.abs(scores.grad.numpy() - dx).max():.0e}")
print(f"length of da {np.linalg.norm(da):.4f}, of dx {np.linalg.norm(dx):.5f}: "
      f"{100 * np.linalg.norm(dx) / np.linalg.norm(da):.2f} % comes through")

# %% [markdown]
# The loss shouts that the first word should get more weight, and 0.14 % of the shout comes through. The lesson on one
# neuron ended with a saturated tanh. This is the same disease: a confident softmax is deaf.
#
# The cure is plain in the formula: keep the scores close to each other. Divide ours by 10, and the weights are spread
# out.

# %%
calm = softmax(x / 10)
calm_dx = calm * (da - (calm * da).sum())
print("softmax(x / 10) =", np.round(calm, 4))
print(f"{100 * np.linalg.norm(calm_dx) / np.linalg.norm(da):.1f} % of da comes through")

# %% [markdown]
# Keeping the scores close is what the √d_k in attention is for (lesson 4). The picture shows both: the weights, the
# Jacobians on one common scale of colour (in all lessons orange is above 0 and purple below), and how the strongest
# gain of J (its largest singular value) dies as the scores are stretched.

# %%
BLUE, ORANGE = "#0072B2", "#D55E00"


def jacobian(a: np.ndarray) -> np.ndarray:
    """diag(a) − a aᵀ."""
    return np.diag(a) - np.outer(a, a)


figure = Figure(figsize=(9, 6), layout="constrained")
panels = figure.subplot_mosaic([["bars of x", "bars of x / 10", "gain"], ["J of x", "J of x / 10", "gain"]],
                               width_ratios=[1, 1, 1.15])
for name, divisor in [("x", 1), ("x / 10", 10)]:
    weights = softmax(x / divisor)
    bars, table = panels[f"bars of {name}"], panels[f"J of {name}"]
    bars.bar(range(4), weights, color=BLUE)
    for place, weight in enumerate(weights):
        bars.text(place, weight + 0.02, f"{weight:.3f}" if weight > 1e-3 else f"{weight:.0e}", ha="center", fontsize=9)
    bars.set(xticks=range(4), xticklabels=[f"{v:g}".replace("-", "−") for v in x / divisor], ylim=(0, 1.12),
             xlabel="score", ylabel="weight", title=f"softmax({name})")
    table.imshow(jacobian(weights), cmap="PuOr_r", vmin=-0.25, vmax=0.25)
    for (i, j), value in np.ndenumerate(jacobian(weights)):
        number = f"{abs(value):.2f}" if value > -0.005 else f"−{-value:.2f}"
        table.text(j, i, number, ha="center", va="center", color="white" if abs(value) > 0.16 else "black")
    table.set(xticks=range(4), yticks=range(4), xlabel="score j", ylabel="weight i", title=f"Jacobian at {name}")

stretches = np.geomspace(0.01, 3, 120)
gain = panels["gain"]
gain.loglog(stretches, [np.linalg.norm(jacobian(softmax(c * x)), 2) for c in stretches], color=BLUE)
for stretch, name in [(0.1, "x / 10"), (1.0, "x")]:
    value = np.linalg.norm(jacobian(softmax(stretch * x)), 2)
    gain.plot(stretch, value, "o", color=ORANGE)
    gain.annotate(f"{name}: {value:.2g}", (stretch, value), (-8, -14), textcoords="offset points", ha="right")
gain.set(xlabel="scores multiplied by", ylabel="strongest gain of J", title="what comes through", ylim=(1e-9, 3))
gain.grid(alpha=0.3)
figure.savefig(PICTURES / "02_softmax.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# Most classifiers end in a softmax. Suppose one is sure of the fourth class, with our scores, and the truth is the
# third, to which it gave two billionths. By all that was said, it should be deaf to its mistake. Yet classifiers
# recover from such mistakes at once. What saves them, and why does it not save attention?

# %% [markdown]
# ## The answer
#
# The logarithm. A classifier's loss is the *cross-entropy* L = −log a₂ (we count from 0), and its da is −1/a₂ at the
# truth: as huge as a₂ is tiny. The small factor of the softmax and the large one of the logarithm cancel exactly:
#
# $$dx = a \circ (da - D) = a - \mathrm{onehot}(2)$$
#
# The gradient is the plain difference between what was said and what is true, and never dies while they differ. In
# attention no logarithm follows. The weights are multiplied by values and go on, da is an ordinary number, and
# nothing cancels.

# %%
scores = Tensor(x[None], requires_grad=True)
F.cross_entropy(scores, np.array([2])).backward()
print("through cross-entropy:", np.round(scores.grad.numpy()[0], 4))
print("a - onehot:           ", np.round(a - np.eye(4)[2], 4))
