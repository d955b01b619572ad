# %% [markdown]
# # Lesson 12: Backprop through attention, whole
#
# Everything comes together here. We derive every gradient of attention on paper, write the result down in ten lines of
# NumPy, hold it to the engine, break it on purpose, and then open the explorer on a model of our own.
#
# **Afterwards you know** how to derive every gradient of attention, which checks find a wrong one, and how the
# backward pass can do without the table A.
#
# ## The forward pass
#
# One head reads one sentence: X has a row of D features for each of T words, and d_k is the width of the head.
#
# $$Q = XW_Q \qquad K = XW_K \qquad V = XW_V \qquad S = \frac{QK^\top}{\sqrt{d_k}} \qquad A = \mathrm{softmax}(S)
# \qquad O = AV \qquad Y = OW_O$$
#
# Q, K, V and O are T × d_k, S and A are T × T. (Biases are added as well; they will cost us one line.)
#
# ## One rule
#
# Let L be the loss, and write dZ for the table of its derivatives by the entries of Z. If Z moves by a little δZ, the
# loss moves by the sum of all products, $\delta L = \langle dZ, \delta Z\rangle = \sum_{ij} dZ_{ij}\,\delta Z_{ij}$. To
# send a gradient through a step Z = f(X), write δZ in terms of δX, and bring ⟨dZ, δZ⟩ into the form ⟨something, δX⟩.
# That something is dX.
#
# For a product Z = AB it gives δZ = δA B + A δB, and in the first part
#
# $$\sum_{ij} dZ_{ij} \sum_k \delta A_{ik} B_{kj} = \sum_{ik} \Big(\sum_j dZ_{ij} B_{kj}\Big) \delta A_{ik}
# \quad\Rightarrow\quad dA = dZ\,B^\top, \qquad \text{and likewise}\quad dB = A^\top dZ$$
#
# Nothing to learn by heart: a gradient has the shape of its tensor, and only one way of putting the factors fits.
#
# ## On paper
#
# From the last step to the first, with G = dY as it comes from above:
#
# $$Y = OW_O: \quad dO = G\,W_O^\top, \quad dW_O = O^\top G$$
# $$O = AV: \quad dA = dO\,V^\top, \quad dV = A^\top dO$$
# $$A = \mathrm{softmax}(S): \quad dS = A \circ (dA - D), \quad D_i = \sum_j A_{ij}\,dA_{ij} \qquad\text{(lesson 2)}$$
# $$S = QK^\top/\sqrt{d_k}: \quad dQ = dS\,K/\sqrt{d_k}, \quad dK = dS^\top Q/\sqrt{d_k}$$
# $$Q = XW_Q: \quad dW_Q = X^\top dQ, \quad \text{and } dQ\,W_Q^\top \text{ for X; the same for K and V}$$
#
# X was used three times, so it receives three gradients, and they add up. A mask puts −∞ into S, hence 0 into A, hence
# 0 into dS: it needs no line of its own. Several heads are several such computations side by side on columns of the
# weights. And one W serves every word of every sentence of a batch, so its gradient is a sum over all of them.
#
# ## Ten lines
#
# A real layer of the library lends us its numbers: two sentences of five words, two heads of width 4, a causal mask.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import minigrad as mg
from minigrad import Tensor, optim

from transformer import MultiHeadAttention, Transformer, TransformerConfig, causal_mask, trace
from transformer.data import build_tokenizers, collate, encode_pairs, get_task
from transformer.explore.translation import explain
from transformer.translator import Translator

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)
mg.manual_seed(0)
rng = np.random.default_rng(0)
B, T, D, H = 2, 5, 8, 2
layer = MultiHeadAttention(D, H).to(dtype="float64")
X, G, mask = rng.normal(size=(B, T, D)), rng.normal(size=(B, T, D)), causal_mask(T)
for bias in (layer.query.bias, layer.key.bias, layer.value.bias, layer.output.bias):
    bias.copy_(rng.normal(size=D))
linears = (layer.query, layer.key, layer.value, layer.output)
WQ, WK, WV, WO = (linear.weight.numpy().T for linear in linears)
bQ, bK, bV, bO = (linear.bias.numpy() for linear in linears)


def split(x):
    """The features of each head apart: (B, T, D) → (B, H, T, d_k)."""
    return x.reshape(B, T, H, D // H).swapaxes(1, 2)


def join(x):
    """The inverse of `split`."""
    return x.swapaxes(1, 2).reshape(B, T, D)


Q, K, V = split(X @ WQ + bQ), split(X @ WK + bK), split(X @ WV + bV)
S = np.where(mask, Q @ K.mT / math.sqrt(D // H), -np.inf)
A = np.exp(S - S.max(axis=-1, keepdims=True))
A /= A.sum(axis=-1, keepdims=True)
C = join(A @ V)  # the O of all heads, side by side
Y = C @ WO + bO

# %% [markdown]
# That was the forward pass. The backward pass is this (`x.mT` transposes the last two axes):

# %%
dO = split(G @ WO.T)
dV = A.mT @ dO
dA = dO @ V.mT
dS = A * (dA - (A * dA).sum(axis=-1, keepdims=True))
dQ = dS @ K / math.sqrt(D // H)
dK = dS.mT @ Q / math.sqrt(D // H)
dX = join(dQ) @ WQ.T + join(dK) @ WK.T + join(dV) @ WV.T
dWO = (C.mT @ G).sum(axis=0)
dWQ, dWK, dWV = ((X.mT @ join(d)).sum(axis=0) for d in (dQ, dK, dV))
dbQ, dbK, dbV, dbO = (d.sum(axis=(0, 1)) for d in (join(dQ), join(dK), join(dV), G))

# %% [markdown]
# ## What the engine says
#
# The layer runs on minigrad, inside a `trace` block, which keeps every tensor and its gradient. The gradient from above
# is our G.

# %%
x = Tensor(X, requires_grad=True)
with trace(layer) as t:
    layer(x, x, x, mask).backward(G)
inside = t["MultiHeadAttention"]
engine = {"dO": inside.gradient("context"), "dV": inside.gradient("values"), "dA": inside.gradient("weights"),
          "dS": inside.gradient("scaled"), "dQ": inside.gradient("queries"), "dK": inside.gradient("keys"),
          "dX": x.grad, "dWQ": layer.query.weight.grad.mT, "dWK": layer.key.weight.grad.mT,
          "dWV": layer.value.weight.grad.mT, "dWO": layer.output.weight.grad.mT, "dbQ": layer.query.bias.grad,
          "dbV": layer.value.bias.grad, "dbO": layer.output.bias.grad}
ours = globals()
differences = {name: np.abs(ours[name] - found.numpy()).max() / np.abs(ours[name]).max()
               for name, found in engine.items()}
for name, difference in differences.items():
    print(f"{name:4s} {ours[name].shape!s:14s} largest relative difference {difference:.0e}")
print(f"dbK: largest {np.abs(dbK).max():.0e} by hand, {np.abs(layer.key.bias.grad.numpy()).max():.0e} by the engine")

# %% [markdown]
# Equal, to the last digits. One is missing from the list, since a relative difference makes no sense for it: **dbK is
# 0**, for every attention and every loss. Lesson 3 ended with the reason: a bias on all keys adds qᵢ·b to all scores of
# query i alike, and softmax sees differences only. A checker that finds a gradient there has found a bug.
#
# ## Checks that cost nothing
#
# Whatever the numbers are, some things must hold. They find most mistakes before any comparison does.

# %%
forbidden = ~np.broadcast_to(mask, A.shape)
checks = {
    "rows of dS sum to 0": np.abs(dS.sum(axis=-1)).max(),
    "D is dO·O, row by row": np.abs((A * dA).sum(axis=-1) - (dO * (A @ V)).sum(axis=-1)).max(),
    "dS where the mask forbids": np.abs(dS[forbidden]).max(),
    "dQ of word 0, which sees one key": np.abs(dQ[:, :, 0]).max(),
}
for statement, residual in checks.items():
    print(f"{statement:34s} {residual:.0e}")
print(f"but dA where the mask forbids: up to {np.abs(dA[forbidden]).max():.1f}")

# %% [markdown]
# ## Break it
#
# Three mistakes. What does each do to dX? The cosine says whether it still points the right way, the length what became
# of its size.


# %%
def gradient_of_inputs(dS, transpose=True):
    """dX from a dS, right or wrong; without `transpose`, dK with dS in the place of dSᵀ."""
    scale = 1 / math.sqrt(D // H)
    dQ, dK = dS @ K * scale, (dS.mT if transpose else dS) @ Q * scale
    return join(dQ) @ WQ.T + join(dK) @ WK.T + join(dV) @ WV.T


mistakes = {"nothing": (dS, True), "dS divided by the batch size": (dS / B, True), "−D dropped": (A * dA, True),
            "a transpose forgotten in dK": (dS, False)}
for mistake, (wrong, transpose) in mistakes.items():
    found = gradient_of_inputs(wrong, transpose)
    cosine = (found * dX).sum() / np.linalg.norm(found) / np.linalg.norm(dX)
    print(f"{mistake:28s} cosine {cosine:.3f}  length {np.linalg.norm(found) / np.linalg.norm(dX):.3f}  "
          f"rows of dS sum to {np.abs(wrong.sum(axis=-1)).max():.2f}")

# %% [markdown]
# Divided by the batch size, dX still points nearly the right way: cosine 0.978. A model with this bug learns, only
# worse, and in a batch of one there is nothing to be seen. Transformers have been published with it. Without −D the
# direction is lost, cosine 0.440, but the sums of the rows give it away. The transpose passes the sums; only a
# comparison finds it. So check gradients with two sentences at least, and with as many keys as queries *and* not.
#
# ## Open the explorer
#
# Now a model of our own: it learns to copy a line of letters, in a hundred and twenty updates. `explain` lets it read a
# line, sends the loss back, and writes a page with every number on the way.

# %%
pairs = [pair for pair in get_task("copy").pairs("train", 600, seed=0) if len(pair[0].split()) <= 6]
tokenizer, _ = build_tokenizers("words", *zip(*pairs, strict=True), shared=True)
examples = encode_pairs(pairs, tokenizer, tokenizer)
words = len(tokenizer.vocabulary)
model = Transformer(TransformerConfig(words, words, d_model=32, num_heads=2, num_encoder_layers=1,
                                      num_decoder_layers=1, d_ff=64, dropout=0.0, max_length=8))
optimizer = optim.Adam(model.parameters(), lr=0.005)
for _ in range(120):
    batch = collate(examples, rng.choice(len(examples), 32, replace=False))
    loss = model.loss(batch.source, batch.target[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
translator = Translator(model.eval(), tokenizer, tokenizer)
print("c a b e d →", translator.translate(["c a b e d"])[0][0].text)

explanation = explain(translator, "c a b e d", "c a b e d")
explanation.to_html(PICTURES / "12_backprop_through_attention.html")
print("open", PICTURES / "12_backprop_through_attention.html", "in a browser")

# %% [markdown]
# The whole model runs in that page. Six things to do there. Enter the cross-attention on the map, and walk its strip
# backwards with the arrow keys: it is our ten lines. Click a cell of dS, and read its sum, number by number. Choose a
# row in the softmax panel, and see D as the line that divides winners from losers. Choose a mistake under "Break it",
# and watch which tensors turn red. Type a target that is wrong, and let the story lead you from its loss to the letter
# that it blames. Then take a step against the gradient, and see the loss fall.
#
# Here is one head of the cross-attention: each forward tensor above its gradient. Blue is a weight from 0 to 1; of the
# others, orange is positive and purple negative, each on a scale of its own. A row has the name of the letter that
# the decoder reads, and of the one that it is to write next. Where the model is sure of it, the row of gradients is
# pale: a small loss sends little.

# %%
CROSS = "decoder.layers.0.cross_attention"
queries, keys = explanation.labels(CROSS)
head = explanation.trace[CROSS].head(item=0, head=1)
values, gradients = head.values, head.gradients
figure = Figure(figsize=(11, 4.8), layout="constrained")
panels = figure.subplots(2, 6)
for column, (symbol, made_by, so_here) in enumerate([
        ("Q", "X W_Q", "dS K / √d_k"), ("K", "M W_K", "dSᵀ Q / √d_k"), ("S", "Q Kᵀ / √d_k", "A ∘ (dA − D)"),
        ("A", "softmax(S)", "dO Vᵀ"), ("V", "M W_V", "Aᵀ dO"), ("O", "A V", "dY W_Oᵀ")]):
    for axes, table, title in zip(panels[:, column], (values[symbol], gradients[symbol]),
                                  (f"{symbol} = {made_by}", f"d{symbol} = {so_here}"), strict=True):
        weights = title.startswith("A =")
        largest = np.abs(table).max()
        axes.imshow(table, aspect="auto", interpolation="nearest", cmap="Blues" if weights else "PuOr_r",
                    vmin=0 if weights else -largest, vmax=1 if weights else largest)
        axes.set_title(title, fontsize=10)
        rows = keys if symbol in "KV" else queries
        axes.set_yticks(range(len(rows)), rows, fontsize=8)
        if symbol in "SA":
            axes.set_xticks(range(len(keys)), keys, fontsize=8, rotation=90)
        else:
            axes.set(xticks=[], xlabel="d_k features")
        axes.tick_params(length=0)
panels[0, 0].set_ylabel("forward →", fontsize=11)
panels[1, 0].set_ylabel("← backward", fontsize=11)
figure.savefig(PICTURES / "12_backprop_through_attention.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# The backward pass needs A again, a table of T × T for each head. For a hundred thousand words that is ten thousand
# million numbers, and nobody can keep them. Could one do without, and have only a few columns of A at a time? But D
# sums over a whole row. Which two numbers for each row would you keep instead?

# %% [markdown]
# ## The answer
#
# The first is ℓᵢ = log Σⱼ exp(Sᵢⱼ), which the forward pass knows anyway. With it, any cell of A can be made again,
# alone: Aᵢⱼ = exp(Sᵢⱼ − ℓᵢ). The second is Dᵢ, and it needs no row of A at all, by the second of our checks: Dᵢ =
# dOᵢ·Oᵢ. So take a few keys, make their columns of S, A, dA and dS, use them, and forget them: dK and dV of these keys
# are whole, and dQ is a sum over all parts.
#
# This is how FlashAttention goes backwards (Dao et al. 2022, arXiv:2205.14135). It computes A twice and is faster for
# it, as reading and writing the big table takes longer than making it again.
#
# The rest of the way is in the next three lessons: through the layer norms (13), from the loss (14), and into a step
# (15).

# %%
log_sum = np.log(np.exp(S).sum(axis=-1, keepdims=True))  # ℓ
D_rows = (dO * (A @ V)).sum(axis=-1, keepdims=True)  # D
in_parts = {"dQ": np.zeros_like(dQ), "dK": np.zeros_like(dK), "dV": np.zeros_like(dV)}
for keys_now in (slice(0, 2), slice(2, 4), slice(4, 5)):
    scores = Q @ K[:, :, keys_now].mT / math.sqrt(D // H)
    part = np.exp(np.where(mask[:, keys_now], scores, -np.inf) - log_sum)  # these columns of A
    dS_part = part * (dO @ V[:, :, keys_now].mT - D_rows)
    in_parts["dQ"] += dS_part @ K[:, :, keys_now] / math.sqrt(D // H)
    in_parts["dK"][:, :, keys_now] = dS_part.mT @ Q / math.sqrt(D // H)
    in_parts["dV"][:, :, keys_now] = part.mT @ dO
for name, found in in_parts.items():
    print(f"{name}, two keys at a time: differs by {np.abs(found - ours[name]).max():.0e}")
