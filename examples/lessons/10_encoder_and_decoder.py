# %% [markdown]
# # Lesson 10: Encoder and decoder
#
# A translator has two halves. The *encoder* reads the source sentence, all of it at once, and makes of every word a
# row of numbers: the *memory* M. The *decoder* writes the target sentence, word by word, and before each word it looks
# into the memory. The look is an attention like any other, with one difference: **the keys and values come from the
# source, the queries from what has been written so far.** It is called *cross-attention*.
#
# **Afterwards you know** where queries, keys and values of a cross-attention come from, and why its weights alone do
# not tell which source word a target word depends on, while the gradient does.
#
# In this lesson we train the smallest translator that deserves the name, and then follow one gradient all the way from
# a target word to a source word. It comes by a road that the weights of the cross-attention would not have told us.
#
# ## A translator in half a second
#
# English puts the verb in the middle, Japanese at the end, and marks subject and object by little words, ga and o. Four
# nouns and three verbs make 48 sentences. We train on all of them: here we want to look inside, not to score.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
import itertools
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import minigrad as mg
from minigrad import functional as F
from minigrad import optim

from transformer import Transformer, TransformerConfig
from transformer.explore.trace import trace

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)
NOUNS = {"cat": "neko", "dog": "inu", "bird": "tori", "child": "kodomo"}
VERBS = {"sees": "miru", "hears": "kiku", "seeks": "sagasu"}
SPECIAL = ["<pad>", "<bos>", "<eos>"]  # padding, begin of sentence, end of sentence
ENGLISH = [*SPECIAL, *NOUNS, *VERBS]
JAPANESE = [*SPECIAL, *NOUNS.values(), *VERBS.values(), "ga", "o"]


def ids(vocabulary, words):
    """The numbers of words, as a batch of one sentence that ends in <eos>."""
    return np.array([[vocabulary.index(word) for word in (*words, "<eos>")]])


sentences = list(itertools.product(NOUNS, VERBS, NOUNS))
source = np.concatenate([ids(ENGLISH, words) for words in sentences])
labels = np.concatenate([ids(JAPANESE, (NOUNS[who], "ga", NOUNS[whom], "o", VERBS[does]))
                         for who, does, whom in sentences])
written = np.concatenate([np.full((len(labels), 1), JAPANESE.index("<bos>")), labels[:, :-1]], axis=1)

mg.manual_seed(2)
model = Transformer(TransformerConfig(len(ENGLISH), len(JAPANESE), d_model=16, num_heads=1, num_encoder_layers=1,
                                      num_decoder_layers=1, d_ff=32, dropout=0.0, max_length=8)).to(dtype="float64")
optimizer = optim.Adam(model.parameters(), lr=0.01)
for _ in range(40):
    loss = model.loss(source, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
said = model(source, written).numpy().argmax(axis=-1)
print(f"loss {loss.item():.3f}; {(said == labels).all(axis=1).sum()} of {len(labels)} sentences are right")

# %% [markdown]
# ## Who makes what
#
# Take one sentence, *cat sees dog*, which is *neko ga inu o miru*. The source has four places (three words and
# `<eos>`), the target has six: the decoder reads `<bos>` and is to write neko, reads neko and is to write ga, and so on
# up to `<eos>`. `trace` records every attention that runs inside its block.

# %%
SOURCE = ("cat", "sees", "dog", "<eos>")
TARGET = ("neko", "ga", "inu", "o", "miru", "<eos>")
CROSS, ENCODER = "decoder.layers.0.cross_attention", "encoder.layers.0.self_attention"
one = sentences.index(("cat", "sees", "dog"))
english, japanese, so_far = source[[one]], labels[[one]], written[[one]]
with trace(model) as seen:
    model(english, so_far)
cross = seen[CROSS]
for name, kind in (("Q", "queries"), ("K", "keys"), ("V", "values"), ("A", "weights")):
    print(f"{name}: {kind:8s} {getattr(cross, kind).shape[2:]}")

# %% [markdown]
# Six queries, one for each word to be written. Four keys and values, one for each place of the source. So A is no
# longer square: 6 × 4, and there is no causal mask on it. The source is known from the start; nothing in it is the
# future.
#
# The claim was that K and V know nothing of the target, and Q nothing of what is not yet written. Let us hear it from
# the numbers: we change one written word, inu, which the decoder reads at place 3 (we count from 0).

# %%
other = so_far.copy()
other[0, 3] = JAPANESE.index("tori")
with trace(model) as changed:
    model(english, other)
for kind in ("keys", "values", "queries"):
    moved = np.abs(getattr(changed[CROSS], kind).numpy() - getattr(cross, kind).numpy())[0, 0].max(axis=-1)
    print(f"{kind:8s} change at the places {np.flatnonzero(moved).tolist()}")

# %% [markdown]
# Keys and values stay as they are, bit by bit. That is why the encoder runs once for a whole translation, and why K and
# V are computed once and kept. The queries change from place 3 on, and not before: the decoder's own self-attention,
# which makes them, has a causal mask.
#
# ## Who looks where
#
# A row of A says how the decoder shares its look when it is to write that word.


# %%
def table(rows, title):
    """Rows of target words, columns of source words."""
    print(f"{title:16s}" + "".join(f"{word:>8s}" for word in SOURCE))
    for word, row in zip(TARGET, rows, strict=True):
        print(f"{word:16s}" + "".join(f"{value:8.2f}" for value in row))


A = cross.weights.numpy()[0, 0]
table(A, "A")

# %% [markdown]
# For neko it looks at cat, with 0.96; for inu at dog, with 0.94. As one would draw it. But for miru it looks at
# `<eos>`, with 0.85, and hardly at *sees*: 0.12. And yet it says the right verb. Does it guess?
#
# ## Follow the gradient
#
# Ask the gradient. We take the loss of the one word miru, row 4, and go backwards. There is one decoder layer, so above
# the cross-attention every place is for itself, and of dY only row 4 is not zero. From there on it goes
#
# - through the **values**: O = A V, so dV = Aᵀ dO. One row of dO means dVⱼ = A₄ⱼ dO₄: every source place gets *the same
#   vector*, in the measure in which it was looked at;
# - through the **keys**: dS₄ = A₄ ∘ (dA₄ − D), and dKⱼ = dS₄ⱼ q₄ / √d_k: again one vector for all, weighed by dS, which
#   says "more of this place" or "less of that";
# - and both meet in M: dM = dK W_Kᵀ + dV W_Vᵀ.


# %%
def loss_of(place):
    """The loss of one target word, with the words before it written rightly."""
    return F.cross_entropy(model(english, so_far)[:, place], japanese[:, place])


def followed(place):
    """The trace of that loss and its backward."""
    model.zero_grad()
    with trace(model) as t:
        loss_of(place).backward()
    return t


MIRU = TARGET.index("miru")
t = followed(MIRU)
head = t[CROSS].head(item=0, head=0)
values, gradients = head.values, head.gradients
print("rows of dY that are not 0:", np.flatnonzero(gradients["Y"].any(axis=1)).tolist())

dO, q, dS = gradients["O"][MIRU], values["Q"][MIRU], gradients["S"][MIRU]
by_values = np.outer(A[MIRU], dO) - gradients["V"]
by_keys = np.outer(dS, q) / np.sqrt(16) - gradients["K"]
print(f"dV and dK by the two formulas: off by {np.abs(by_values).max():.0e} and {np.abs(by_keys).max():.0e}")
for place, word in enumerate(SOURCE):
    print(f"{word:6s} A {A[MIRU, place]:.2f}   |dV| {np.linalg.norm(gradients['V'][place]):.4f}   "
          f"dS {dS[place]:+.4f}   |dK| {np.linalg.norm(gradients['K'][place]):.4f}   "
          f"|dM| {np.linalg.norm(gradients['M'][place]):.4f}")

# %% [markdown]
# So the place of `<eos>` in the memory is told how to change with 0.0414, three times as loudly as that of sees. (Read
# dS, too: training goes against the gradient, so it would give sees a higher score and `<eos>` a lower one. And the
# four sum to 0, as every row of dS does.)
#
# But M is not the last stop. The row of M at `<eos>` was *made* by the encoder, and there too an attention mixes the
# places. Which word does `<eos>` look at there?

# %%
inside = t[ENCODER]
print("in the encoder, <eos> looks at:",
      ", ".join(f"{word} {weight:.2f}" for word, weight in zip(SOURCE, inside.weights.numpy()[0, 0, 3], strict=True)))
arrived = np.linalg.norm(inside.residual.stream.grad.numpy()[0], axis=-1)
for word, size in zip(SOURCE, arrived, strict=True):
    print(f"{word:6s} gets {size:.4f} of the gradient, {100 * size / arrived.sum():.0f} %")

# %% [markdown]
# There is the answer. In the encoder, `<eos>` looks at *sees*, with all its weight: it has become a messenger that
# carries the verb to where the decoder picks it up. The gradient walks the same road backwards, and at the embedded
# words, the very beginning, sees gets the largest share. (The share of `<eos>` came down the residual path: the
# messenger's own row.) The weights of one attention show one step; **the gradient shows the whole road**.
#
# Do not believe it, nudge it. We move two tensors a little along their gradients: in the cross-attention the value of
# `<eos>`, in the encoder what goes from sees into the values. The loss of miru must change at a rate that is the square
# of the gradient's length.


# %%
def nudge(attention, tap, place):
    """How fast the loss of miru changes when one row of a tensor moves along its gradient: tried, and predicted."""
    direction = t[attention].gradient(tap).numpy().copy()
    direction[..., np.arange(len(SOURCE)) != place, :] = 0
    tried = t.finite_difference(lambda: loss_of(MIRU), attention, tap, direction)
    return f"{tried:.10f} nudged, {(direction ** 2).sum():.10f} by the gradient"


print("the value of <eos>:", nudge(CROSS, "values", place=3))
print("from sees into the values:", nudge(ENCODER, "value_input", place=1))

# %% [markdown]
# The picture does the same for all six target words. Left, where the decoder looks; in the middle, where in the memory
# the gradient of that word's loss arrives; right, at which source words it ends. Each row is divided by its sum.

# %%
at_memory, at_words = [], []
for place in range(len(TARGET)):
    t = followed(place)
    at_memory.append(np.linalg.norm(t[CROSS].head().gradients["M"], axis=1))
    at_words.append(np.linalg.norm(t[ENCODER].residual.stream.grad.numpy()[0], axis=1))
shares = [A, *(np.array(sizes) / np.sum(sizes, axis=1, keepdims=True) for sizes in (at_memory, at_words))]
table(shares[2], "at the words")

figure = Figure(figsize=(9, 3.9), layout="constrained")
titles = ("A: where the decoder looks", "gradient at the memory", "gradient at the words")
for axes, share, title, colours in zip(figure.subplots(1, 3), shares, titles, ("Blues", "Oranges", "Oranges"),
                                       strict=True):
    axes.imshow(share, cmap=colours, vmin=0, vmax=1)
    for (i, j), value in np.ndenumerate(share):
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.6 else "black")
    axes.set(xticks=range(4), xticklabels=SOURCE, yticks=range(6), yticklabels=TARGET)
    axes.set_title(title, fontsize=11)
    axes.tick_params(length=0)
figure.savefig(PICTURES / "10_encoder_and_decoder.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# In a batch, short sentences are padded, so that all have the same length. The padding has rows in M, in K and in V,
# like any word. A mask keeps the decoder from looking at them. Now the loss of the whole sentence is sent back. Do
# those rows of M get a small gradient, or none? Two paths lead there, the values and the keys: argue for each.

# %% [markdown]
# ## The answer
#
# None at all: exactly 0, not a small number. A masked weight is 0, since its score is −∞. Through the values arrives
# dVⱼ = Σᵢ Aᵢⱼ dOᵢ, where every Aᵢⱼ is 0. Through the keys arrives dKⱼ = Σᵢ dSᵢⱼ qᵢ / √d_k, and dS = A ∘ (dA − D) has
# the same factor. dA itself is *not* 0 there: the decoder would have an opinion on what the padding says. But A = 0
# says that nobody listens.
#
# It also shows how gradients of a batch and of a sentence are made: the loss is a sum over target words, so dM is the
# sum of what each word sends, and that of the padding is a sum of zeros.

# %%
padded = np.concatenate([english, np.zeros((1, 2), int)], axis=1)  # two places of <pad>
with trace(model) as t:
    model.loss(padded, japanese, reduction="sum").backward()
cross = t[CROSS].head()
print("A of the padding:  ", np.abs(cross.values["A"][:, 4:]).max())
print("dA of the padding: ", f"up to {np.abs(cross.gradients['A'][:, 4:]).max():.3f}")
print("dM of the padding: ", np.abs(cross.gradients["M"][4:]).max())
by_word = sum(followed(place)[CROSS].head().gradients["M"] for place in range(len(TARGET)))
print(f"dM of the sentence, less the sum over its words: {np.abs(cross.gradients['M'][:4] - by_word).max():.0e}")
