# %% [markdown]
# # Lesson 5: Masks
#
# A decoder writes word after word, and is trained on whole sentences at once. So it must be kept from looking at the
# words that it has yet to write: a query may attend to its own position and to earlier ones. That is the *causal
# mask*. The rule in this project, everywhere: a mask is boolean, and **True means "may attend"**.
#
# **Afterwards you know** why no gradient passes a mask, which words are taught by which, and what becomes of a row
# that may see nothing.
#
# A mask works by one trick: where it is False, the score becomes −∞, and e^(−∞) = 0. We take a table of scores, fill
# what may not be seen with −∞, and apply softmax row by row.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from minigrad import Tensor, where
from minigrad import functional as F

from transformer.model import causal_mask, padding_mask

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)

hidden = 2.0  # the scores above the diagonal: any number; softmax will not see them
table = np.array([[1.1, hidden, hidden, hidden],
                  [1.4, -0.7, hidden, hidden],
                  [-2.1, 1.0, 0.8, hidden],
                  [0.9, 2.9, 3.3, 1.4]])
mask = causal_mask(4)
print(mask.astype(int))

scores = Tensor(table, requires_grad=True)
weights = F.softmax(where(mask, scores, -np.inf))
weights.retain_grad()
A = weights.detach().numpy()
for number, row in enumerate(A, start=1):
    print(f"row {number}:", " / ".join(f"{value:.2f}" for value in row))

# %% [markdown]
# The first word sees itself alone, so its weight is 1.00, whatever its score. Row 2 (we count from 1 here) is 0.89 /
# 0.11, row 3 is 0.02 / 0.54 / 0.44, row 4 is 0.05 / 0.35 / 0.52 / 0.08. Each row sums to 1 over what it may see, and
# the weights above the diagonal are not small: they are exactly 0.
#
# ## Where the gradient goes, and where it cannot
#
# Now backwards. A gradient dA arrives from the values, and it is full: dA = dO Vᵀ knows nothing of masks, so it says
# of *hidden* words, too, whether more weight on them would help. Softmax's rule answers: dS = A ∘ (dA − D). Where A
# is 0, dS is 0. The hidden cell's opinion is multiplied away, and it has no part in the average D either.

# %%
dA = np.array([[0.6, -1.0, 0.8, 0.4],
               [-0.5, 0.7, 1.0, -0.9],
               [0.3, -0.8, 0.5, 1.0],
               [0.9, 0.2, -0.6, -0.3]])  # as if it came from above
(weights * dA).sum().backward()
dS = scores.grad.numpy()
print(np.round(dS, 4) + 0.0)
print(f"above the diagonal: |dA| up to {np.abs(dA[~mask]).max()}, |dS| exactly {np.abs(dS[~mask]).max():.0f}")
print(f"by hand A ∘ (dA − D): differs by {np.abs(A * (dA - (A * dA).sum(axis=1, keepdims=True)) - dS).max():.0e}")

# %% [markdown]
# The first row is all 0, on the diagonal as well: a word that sees only itself has nothing to choose, so its query
# learns nothing, and dQ is 0 there.
#
# Let us ask the same of the whole layer. Which input words get a gradient from the output at word t? We send one from
# each output in turn, and look at the length of what arrives at each input.

# %%
random = np.random.default_rng(0)
words = random.standard_normal((4, 6))
W = [random.standard_normal((6, 6)) / 6 ** 0.5 for _ in range(3)]


def arrives(mask: np.ndarray | None) -> np.ndarray:
    """Row t, column s: the length of the gradient that output t sends to input s."""
    lengths = np.zeros((4, 4))
    for t in range(4):
        x = Tensor(words, requires_grad=True)
        out = F.scaled_dot_product_attention(*(x @ Tensor(w) for w in W), mask)
        out[t].sum().backward()
        lengths[t] = np.linalg.norm(x.grad.numpy(), axis=1)
    return lengths


flow = arrives(mask)
print(np.round(flow, 3))
print(f"to later words, with the mask: exactly {flow[~mask].max():.0f}; "
      f"without: up to {arrives(None)[~mask].max():.2f}")

# %% [markdown]
# Nothing reaches a later word: not a small number, but 0. And in each column below the diagonal there is something:
# **a word is taught by itself and by all words after it.** The last word of a sentence is taught by itself alone.
#
# ## Padding
#
# Sentences of a batch have different lengths, and the short ones are filled up with a padding word (0 here), which
# nobody should attend to. `padding_mask` makes a row of True and False for each sentence, and `&` joins the two
# masks.

# %%
ids = np.array([[5, 3, 8, 2],
                [7, 4, 0, 0]])
allowed = padding_mask(ids) & causal_mask(4)  # (sentences, 1, 4, 4): the 1 stands for all heads
print(allowed[1, 0].astype(int))

batch = random.standard_normal((2, 1, 4, 6))
other = batch.copy()
other[1, 0, 2:] = 1e6  # whatever stands at the padding …
one, two = (F.scaled_dot_product_attention(*(Tensor(b @ w) for w in W), allowed).numpy() for b in (batch, other))
print("the real words' outputs are the same bits:", np.array_equal(one[1, 0, :2], two[1, 0, :2]))

# %% [markdown]
# ## A row that may see nothing
#
# Join masks, and sooner or later a query is allowed *nothing*: a row of −∞ alone. Written naively, softmax computes
# −∞ − (−∞), which is NaN, and NaN spreads: what all sentences share, the gradients of the weights, is NaN with it.
# The right answer is a row of zeros, and a gradient of zeros.
#
# Some code writes −10⁹ in place of −∞. Then such a row gives the *same* weight to all that is forbidden.

# %%
nothing = np.full(4, -np.inf)
with np.errstate(invalid="ignore"):
    naive = np.exp(nothing - nothing.max()) / np.exp(nothing - nothing.max()).sum()
print("naive softmax of a row of -inf:", naive)
row = Tensor(np.ones(4), requires_grad=True)
out = F.softmax(where(np.zeros(4, dtype=bool), row, -np.inf))
(out * dA[0]).sum().backward()
print("here:", out.detach().numpy(), "and its gradient", np.abs(row.grad.numpy()))
print("with -1e9:", F.softmax(Tensor(np.full(4, -1e9))).numpy())

# %% [markdown]
# The picture is the whole lesson. Look at the hatched cells, which the queries may not see: gradient arrives there,
# dA, and none leaves, dS.

# %%
GREY = "#777777"
figure = Figure(figsize=(9, 3), layout="constrained")
for axes, (name, matrix, kind) in zip(figure.subplots(1, 4), [
        ("scores", table, "score"), ("weights A", A, "weight"), ("dA arrives", dA, "gradient"),
        ("dS leaves", dS, "gradient")], strict=True):
    limits = {"score": ("PuOr_r", -3.5, 3.5), "weight": ("Blues", 0, 1), "gradient": ("PuOr_r", -1, 1)}[kind]
    drawn = np.where(mask | (name == "dA arrives"), matrix, np.nan)
    axes.imshow(drawn, cmap=limits[0], vmin=limits[1], vmax=limits[2])
    for i, j in np.ndindex(4, 4):
        if not mask[i, j]:
            axes.fill([j - 0.5, j + 0.5, j + 0.5, j - 0.5], [i - 0.5, i - 0.5, i + 0.5, i + 0.5], fill=False,
                      hatch="////", edgecolor=GREY, linewidth=0)
        value = matrix[i, j]
        text = "−∞" if name == "scores" and not mask[i, j] else f"{value + 0.0:.2f}".replace("-", "−")
        axes.text(j, i, text, ha="center", va="center", fontsize=9,
                  bbox=None if mask[i, j] else {"facecolor": "white", "edgecolor": "none", "pad": 1},
                  color="white" if mask[i, j] and abs(value) > 0.6 * limits[2] else "black")
    axes.set(title=name, xlabel="key", xticks=range(4), xticklabels=range(1, 5), yticks=range(4),
             yticklabels=range(1, 5))
figure.supylabel("query")
figure.supxlabel("hatched: the query may not attend to the key", fontsize=10)
figure.savefig(PICTURES / "05_masks.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# Why not simply multiply the *weights* by the mask, after the softmax? The forbidden weights are 0 then, too, and no
# −∞ is needed. Who notices, and does the future stay hidden?

# %% [markdown]
# ## The answer
#
# The future leaks. Softmax divides by a sum over *all* scores, forbidden ones too: change a later word's score, and
# the weights of what may be seen change with it. The rows no longer sum to 1, and a gradient flows to the hidden
# scores, through that sum. Training can use it: the model reads ahead, its loss falls, and when it has to write for
# itself, the future is not there.

# %%
late = Tensor(table, requires_grad=True)
masked_late = F.softmax(late) * Tensor(mask.astype(float))
print("sums of the rows:", np.round(masked_late.detach().numpy().sum(axis=1), 4))
(masked_late * dA).sum().backward()
print(f"gradient to hidden scores: up to {np.abs(late.grad.numpy()[~mask]).max():.4f}, where the right mask gives 0")
