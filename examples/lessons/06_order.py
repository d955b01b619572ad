# %% [markdown]
# # Lesson 6: Order
#
# 犬 が 人 を 噛む: a dog bites a man. 人 が 犬 を 噛む: a man bites a dog. The same five words, and only one of them
# is news. To tell them apart one must know which word stands where. This lesson shows that self-attention, by itself,
# does not know, and what mends it.
#
# **Afterwards you know** what happens to outputs and gradients when words change places, how a vector for each place
# mends it, and that a causal mask carries order, too.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
from itertools import permutations
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import minigrad as mg
from minigrad import Tensor, nn, optim
from minigrad import functional as F

from transformer.explore.plots.figure import japanese_font
from transformer.model import LearnedPositions, MultiHeadAttention, SinusoidalPositions, causal_mask, sinusoid

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)
matplotlib.rcParams["font.family"] = [*matplotlib.rcParams["font.family"], *japanese_font()]

WORDS = ["犬", "が", "人", "を", "噛む"]
order = [2, 1, 0, 3, 4]  # dog and man change places
print(" ".join(WORDS), " → ", " ".join(WORDS[place] for place in order))

mg.manual_seed(0)
attention = MultiHeadAttention(16, num_heads=2).to(dtype="float64")
X = np.random.default_rng(0).standard_normal((5, 16))  # a vector for each word

# %% [markdown]
# ## Words in another order
#
# Let P be the matrix that puts the rows of X in another order. Follow PX through the layer. Projections work on each
# row alone, so the queries are PQ, and likewise PK and PV. The scores are PQ(PK)ᵀ = P(QKᵀ)Pᵀ: the same table, rows
# and columns reordered. Softmax works on each row alone. And the output is (PAPᵀ)(PV) = P(AV), since PᵀP = I. In
# short:
#
# $$f(PX) = P\,f(X)$$
#
# The layer is *permutation-equivariant*: reorder the words, and each word keeps its own output, but for rounding.
# And what holds for a function holds for its derivatives. Send the same gradient to each word, wherever it stands:
# each word gets the same gradient back, and the weights of the layer, which sum over words, do not notice at all.

# %%
G = np.random.default_rng(1).standard_normal((5, 16))  # the gradient that arrives at each word's output


def study(x: np.ndarray, g: np.ndarray) -> dict[str, np.ndarray]:
    """The layer's output, weights and gradients for one sentence."""
    attention.zero_grad()
    words = Tensor(x[None], requires_grad=True)
    out, weights = attention(words, words, words, return_weights=True)
    (out * g).sum().backward()
    return {"output": out.detach().numpy()[0], "A": weights.detach().numpy()[0], "dX": words.grad.numpy()[0],
            "dW": np.concatenate([p.grad.numpy().ravel() for p in attention.parameters()])}


straight, swapped = study(X, G), study(X[order], G[order])
for name in ("output", "dX"):
    print(f"{name}: f(PX) and P f(X) differ by {np.abs(swapped[name] - straight[name][order]).max():.0e}")
print(f"A: {np.abs(swapped['A'] - straight['A'][:, order][:, :, order]).max():.0e}; "
      f"gradients of all weights: {np.abs(swapped['dW'] - straight['dW']).max():.0e}")

# %% [markdown]
# ## A number for each place
#
# The mend is as blunt as the problem: before the first layer, *add to each word a vector that depends on its place
# alone*. The place then travels with the word, into its query, key and value. Two kinds are in use:
#
# - **sinusoidal**: waves of many lengths, fixed for good. Sine and cosine of the same wave stand side by side, so a
#   step of k places is a rotation by the same angle everywhere: the dot product of two places depends on their
#   distance alone.
# - **learned**: a table of parameters, a row for each place, trained with everything else. Its gradient is simple:
#   a sum's gradient goes to both terms, so row p of the table gets what the word at p gets.

# %%
table = sinusoid(50, 16)
dots = table @ table.T
print("dot product of places 3 apart:", ", ".join(f"{dots[p, p + 3]:.4f}" for p in (0, 7, 40)))

mg.manual_seed(1)
learned = LearnedPositions(5, 16).to(dtype="float64")
for name, places in [("sinusoidal", sinusoid(5, 16)), ("learned", learned(5).detach().numpy())]:
    straight_p, swapped_p = study(X + places, G), study(X[order] + places, G[order])
    print(f"{name}: f(PX + places) and P f(X + places) differ by "
          f"{np.abs(swapped_p['output'] - straight_p['output'][order]).max():.2f}, the gradients by "
          f"{np.abs(swapped_p['dX'] - straight_p['dX'][order]).max():.2f}")

words = Tensor(X[None], requires_grad=True)
placed = words + learned(5)
(attention(placed, placed, placed) * G).sum().backward()
print(f"the gradients of the learned table and of the words differ by "
      f"{np.abs(learned.table.grad.numpy() - words.grad.numpy()[0]).max():.0f}")

# %% [markdown]
# ## Can it be learnt?
#
# A task that is nothing but order: four words in all 24 orders, and the question whether word 0 comes before word 1.
# The network is an embedding, one layer of attention, the mean over the words, and a linear layer. Without places,
# all 24 sentences give the same answer, so half of the answers are wrong, however long we train.

# %%
class Reader(nn.Module):
    """Which of two words comes first?"""

    def __init__(self, positions: nn.Module | None) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(4, 16), positions
        self.attention, self.output = MultiHeadAttention(16, num_heads=2), nn.Linear(16, 2)

    def forward(self, ids: np.ndarray) -> Tensor:
        """(sentences, 4) → (sentences, 2)."""
        x = self.embedding(ids)
        if self.positions is not None:
            x = x + self.positions(ids.shape[1])
        x = x + self.attention(x, x, x)
        return self.output(x.mean(axis=1))


sentences = np.array(list(permutations(range(4))))
first = (np.argmax(sentences == 0, axis=1) < np.argmax(sentences == 1, axis=1)).astype(int)
curves = {}
for name, make in [("no places", lambda: None), ("sinusoidal", lambda: SinusoidalPositions(4, 16)),
                   ("learned", lambda: LearnedPositions(4, 16))]:
    mg.manual_seed(0)
    reader = Reader(make())
    optimizer = optim.Adam(reader.parameters(), lr=0.01)
    right = []
    for _ in range(60):
        logits = reader(sentences)
        right.append(100 * (logits.detach().numpy().argmax(axis=1) == first).mean())
        optimizer.zero_grad()
        F.cross_entropy(logits, first).backward()
        optimizer.step()
    curves[name] = right
    print(f"{name:10s}: {right[-1]:.0f} % right after {len(right)} updates")

# %% [markdown]
# Above, attention of the sentence in its two orders: without places every number moves along with its word; with
# places the numbers change. Below, the sinusoidal table, its dot products, which depend on the distance from the
# diagonal alone, and the three networks learning.

# %%
figure = Figure(figsize=(9, 6.2), layout="constrained")
(plain, moved, with_places), (waves, dot, learning) = figure.subplots(2, 3)
placed = study(X[order] + sinusoid(5, 16), G)["A"]
for axes, weights, rows, title in [
        (plain, straight["A"], range(5), "A of head 1"),
        (moved, swapped["A"], order, "dog and man swapped:\nthe same numbers, moved"),
        (with_places, placed, order, "swapped, with places added:\nother numbers")]:
    axes.imshow(weights[0], cmap="Blues", vmin=0, vmax=1)
    for (i, j), value in np.ndenumerate(weights[0]):
        axes.text(j, i, f"{value:.2f}"[1:], ha="center", va="center", fontsize=9,
                  color="white" if value > 0.6 else "black")
    names = [WORDS[place] for place in rows]
    axes.set(xticks=range(5), xticklabels=names, yticks=range(5), yticklabels=names, title=title)
waves.imshow(table.T, cmap="PuOr_r", vmin=-1, vmax=1, aspect="auto")
waves.set(xlabel="place", ylabel="feature", title="sinusoidal places")
dot.imshow(dots, cmap="Blues")
dot.set(xlabel="place", ylabel="place", title="their dot products:\ndistance alone")
for (name, right), style in zip(curves.items(), [("#D55E00", "-"), ("#0072B2", "-"), ("#009E73", "--")], strict=True):
    learning.plot(right, color=style[0], linestyle=style[1], label=name)
learning.set(xlabel="updates", ylabel="right (%)", ylim=(0, 104), title="which word comes first?")
learning.legend(frameon=False, loc="lower right")
learning.grid(alpha=0.3)
figure.savefig(PICTURES / "06_order.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# A decoder has a causal mask (lesson 5): word t sees the words up to t, and so the words do not all see the same.
# Take such a layer *without* places, and the two sentences from the top; the last word, 噛む, sees everything. Can
# its output tell which of the two it is? And with two such layers?

# %% [markdown]
# ## The answer
#
# With one layer it cannot: the last word sees the same set of keys and values, in another order, and a weighted sum
# does not mind order. With two it can. In the second layer, the words it looks at have been through the first, and
# there 犬 has seen either itself alone or 人 and が, too. **The mask itself carries order**, and decoders without any
# places do learn it (Haviv et al. 2022, arXiv:2203.16634). They have to work it out, though; adding places is cheap.

# %%
mask = causal_mask(5)
for layers in (1, 2):
    ends = []
    for rows in (range(5), order):
        x = Tensor(X[rows][None])
        for _ in range(layers):
            x = x + attention(x, x, x, mask)
        ends.append(x.detach().numpy()[0, -1])
    print(f"layers: {layers}; the last word's outputs differ by {np.abs(ends[0] - ends[1]).max():.1e}")
