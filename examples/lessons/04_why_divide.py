# %% [markdown]
# # Lesson 4: Why divide by √d_k
#
# A score is a dot product of a query and a key, each of d_k features. Attention divides it by √d_k before the
# softmax. Lesson 2 gave the reason in one row of four numbers: large differences make softmax nearly one-hot, and a
# one-hot softmax lets no gradient through. Here we watch it happen to whole matrices, in the backward pass, with d_k
# from 16 to 1024.
#
# **Afterwards you know** why scores grow with √d_k, which gradients starve when nobody divides by it, and why no
# other power of d_k will do.
#
# ## How large is a dot product?
#
# At the start of training the features of queries and keys are roughly independent, with mean 0 and variance 1. Then
# each product of two of them has mean 0 and variance 1 as well, and the score is a sum of d_k such terms. Variances
# of independent terms add: the score has variance d_k, so its typical size is √d_k. (So argue Vaswani et al., who
# introduced the division: 2017, arXiv:1706.03762, section 3.2.1.) We draw some and measure.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from minigrad import Tensor
from minigrad import functional as F

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)

WORDS = 32  # in a sentence
SENTENCES = 32
SIZES = [16, 64, 256, 1024]


def sentences(d_k: int) -> tuple[np.ndarray, ...]:
    """Queries, keys, values, and the gradient that arrives at the output: (sentences, words, d_k) each, seeded."""
    q, k, v, g = np.random.default_rng(d_k).standard_normal((4, SENTENCES, WORDS, d_k))
    return q, k, v, g / d_k ** 0.5  # each row of g about 1 long, however wide the layer


for d_k in SIZES:
    q, k, _, _ = sentences(d_k)
    scores = q @ k.swapaxes(1, 2)
    print(f"d_k = {d_k:4d}: the scores have standard deviation {scores.std():5.2f}; √d_k = {d_k ** 0.5:5.2f}")

# %% [markdown]
# With d_k = 1024, scores of ±32 are common. Lesson 2 had 19 against 12, and that was enough.
#
# ## What comes back
#
# We run attention forwards, send a random gradient dO into its output, and look at each row i of the softmax on the
# way back: dA arrives there, dS leaves. Their lengths' ratio is what comes through. We call a row *dead* if less than
# 1 % does: its query hardly learns where to look.

# %%
def study(d_k: int, scale: float) -> dict[str, np.ndarray]:
    """Attention with the scores multiplied by `scale`: for each row, what happens to it on the way back."""
    q, k, v, g = sentences(d_k)
    query, key, value = (Tensor(array, requires_grad=True) for array in (q, k, v))
    scaled = query @ key.mT * scale
    weights = F.softmax(scaled)
    for tensor in (scaled, weights):
        tensor.retain_grad()
    (weights @ value * g).sum().backward()  # its gradient at the output is g

    def length(x):
        return np.linalg.norm(x, axis=-1)
    through = length(scaled.grad.numpy()) / length(weights.grad.numpy())
    return {"largest weight": weights.detach().numpy().max(axis=-1), "through": through,
            "dQ": length(query.grad.numpy()), "dK": length(key.grad.numpy()), "dV": length(value.grad.numpy())}


DEAD = 0.01
found = {(d_k, name): study(d_k, scale) for d_k in SIZES for name, scale in [("plain", 1), ("divided", d_k ** -0.5)]}
print("                  largest   comes through   dead rows")
print("                  weight    (median)        (< 1 %)")
for (d_k, name), rows in found.items():
    print(f"{d_k:4d} {name:10s}     {rows['largest weight'].mean():.3f}     {100 * np.median(rows['through']):8.4f} %"
          f"    {100 * (rows['through'] < DEAD).mean():5.1f} %")

# %% [markdown]
# Without the division, a row gives on average 0.962 of its attention to a single word at d_k = 1024, and 85.7 % of
# the rows are dead. They have made up their mind before they have seen a single example, at random, and cannot hear
# that they are wrong. Divided by √d_k, the four lines are the same but for chance, and hardly a row is dead: **after
# the division, softmax does not notice how wide the layer is.**
#
# ## Who goes hungry?
#
# The value path does not pass through the softmax. So the values go on learning, and it is the queries and keys that
# starve: the layer learns what to say but not where to look. We compare the lengths of the gradients themselves.

# %%
print("               |dQ|: median   top 5 %      |dV|: median   (over the words)")
for (d_k, name), rows in found.items():
    print(f"{d_k:4d} {name:10s}  {np.median(rows['dQ']):8.4f}  {np.quantile(rows['dQ'], 0.95):8.4f}      "
          f"{np.median(rows['dV']):8.4f}")

# %% [markdown]
# Read the columns downwards. Divided, hardly anything depends on d_k. Plain, the gradient of the typical query fades
# away to 0.0011, while that of the values does not. And look at the top 5 %: the few queries that are still undecided
# get gradients that *grow*, since nothing makes plain scores smaller on the way back either. Silence for most and
# shouting for some, both at once, is what makes such a layer hard to train.
#
# In the picture every dot is a row. Divided, they all stay together; plain, they rain down.

# %%
BLUE, ORANGE = "#0072B2", "#D55E00"
figure = Figure(figsize=(9, 4.2), layout="constrained")
dead, spread = figure.subplots(1, 2, width_ratios=[1, 1.3])
for name, colour, marker in [("plain", ORANGE, "s"), ("divided", BLUE, "o")]:
    label = "scores as they are" if name == "plain" else "divided by √d_k"
    dead.plot(SIZES, [100 * (found[d_k, name]["through"] < DEAD).mean() for d_k in SIZES], color=colour, marker=marker,
              label=label)
dead.set_xscale("log", base=2)
dead.set(xticks=SIZES, xticklabels=SIZES, xlabel="d_k", ylabel="dead rows (%)", ylim=(-3, 100),
         title="rows that let < 1 % through")
dead.legend(frameon=False)
dead.grid(alpha=0.3)
random = np.random.default_rng(0)
for place, d_k in enumerate(SIZES):
    for name, colour, shift in [("plain", ORANGE, -0.2), ("divided", BLUE, 0.2)]:
        through = np.maximum(found[d_k, name]["through"].ravel(), 1e-8)
        spread.semilogy(place + shift + random.uniform(-0.15, 0.15, through.size), through, ".", color=colour,
                        markersize=2, alpha=0.5)
spread.axhline(DEAD, color="black", linewidth=1, linestyle="--")
spread.text(-0.62, DEAD, "1 %", va="bottom", fontsize=9)
spread.set(xticks=range(4), xticklabels=SIZES, xlabel="d_k", ylabel="|dS| / |dA|", xlim=(-0.65, 3.5), ylim=(0.6e-8, 2),
           title="what comes through: a dot for each row\n(what is below 1e−8, at 1e−8)")
spread.grid(alpha=0.3)
figure.savefig(PICTURES / "04_why_divide.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# If small scores are so good, why stop at the root? Divide by d_k itself: softmax will be even softer, and no row
# will ever be dead. What is lost?

# %% [markdown]
# ## The answer
#
# The choice. Divided by d_k, scores have the size 1/√d_k: at d_k = 1024 nearly all lie within a tenth of 0, every
# weight is close to 1/32 = 0.031, and attention is a plain average, whatever the words are. Softmax lets the gradient
# through, but behind it waits the small factor in front of the scores, and shrinks dQ: with the root it did not
# depend on d_k, now it falls like 1/√d_k. **The root is the one power for which neither the weights nor the gradients
# depend on d_k.**

# %%
print(f"divided by d_k   largest weight (1/32 = {1 / 32:.3f})   comes through   |dQ|     and divided by √d_k")
for d_k in SIZES:
    rows, right = study(d_k, 1 / d_k), found[d_k, "divided"]
    print(f"{d_k:4d}             {rows['largest weight'].mean():.3f}                    "
          f"{100 * np.median(rows['through']):8.4f} %     {np.median(rows['dQ']):.4f}   {np.median(right['dQ']):.4f}")
