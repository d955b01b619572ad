# %% [markdown]
# # Lesson 3: Attention by hand
#
# Four words, 私 は 学校へ 行きます (I go to school), and every number of an attention layer, forwards and backwards,
# small enough to check on paper. Each word is a row of four features, and the sentence is the matrix X. Three
# matrices of weights make of each word a *query* (what am I looking for?), a *key* (what can I be found by?) and a
# *value* (what do I have to say?), each of d_k = 2 features.
#
# **Afterwards you know** every matrix of an attention and of its backward pass by its numbers, how a layer begins to
# learn although all its keys are the same, and how to read books that write words as columns.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from minigrad import Tensor
from minigrad import functional as F

from transformer.explore.plots.figure import japanese_font

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)
matplotlib.rcParams["font.family"] = [*matplotlib.rcParams["font.family"], *japanese_font()]

WORDS = ["私", "は", "学校へ", "行きます"]
X = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]], dtype=float)
W_Q = W_V = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], dtype=float)
W_K = np.array([[1, 0], [0, 1], [0, 1], [1, 0]], dtype=float)
d_k = 2


def show(name: str, matrix: np.ndarray) -> None:
    """Print to four digits, a line for each row."""
    for label, row in zip((name, *" " * len(matrix)), matrix, strict=False):
        print(f"{label:>4} " + " ".join(f"{value + 0.0:8.4f}" for value in np.round(row, 4)))


# %% [markdown]
# ## Forward
#
# A word's row times W_Q is its query: 私 is [1, 0, 1, 0], so its query is the first row of W_Q plus the third, [2,
# 0].

# %%
Q, K, V = X @ W_Q, X @ W_K, X @ W_V
for name, matrix in [("Q", Q), ("K", K), ("V", V)]:
    show(name, matrix)

# %% [markdown]
# Now each query meets each key: their dot product is the *score*, R = QKᵀ. Divided by √d_k it becomes S, softmax
# turns each row into weights A, and the weights mix the values: O = AV.

# %%
R = Q @ K.T
S = R / np.sqrt(d_k)
A = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
O = A @ V
for name, matrix in [("R", R), ("S", S), ("A", A), ("O", O)]:
    show(name, matrix)

# %% [markdown]
# Surprised? All scores are 2.0000, all scaled scores 1.4142, all weights 0.2500, and every word gets the mean of the
# values, [1, 1]. The reason is in K: with this W_K **all four keys are the same**, so no query can prefer one to
# another. The layer has been set up, but it has learnt nothing yet. Let us see what the backward pass makes of that.
#
# ## A wish, and its gradient
#
# We wish for something sensible: the verb 行きます should find its subject, and its output should be the value of 私,
# [2, 0]. As a loss, with o for the last row of O: L = ½ ‖o − [2, 0]‖².
#
# Backward we read the forward lines from the last to the first. A product Y = MN has two rules, dM = dY Nᵀ and dN =
# Mᵀ dY; the shapes leave hardly another choice. For softmax we have lesson 2, row by row. That is all there is.

# %%
target = np.array([2.0, 0.0])


def gradients(X, W_Q, W_K, W_V):
    """The loss, the weights, the output, and the gradient of everything."""
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    S = Q @ K.T / np.sqrt(d_k)
    A = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
    O = A @ V
    loss = 0.5 * ((O[3] - target) ** 2).sum()

    dO = np.zeros_like(O)
    dO[3] = O[3] - target             # forward: L = ½‖o − t‖²    so here: do = o − t, and nothing for the other words
    dV = A.T @ dO                     # forward: O = A V          so here: dV = Aᵀ dO
    dA = dO @ V.T                     #                           and:     dA = dO Vᵀ
    D = (A * dA).sum(axis=1, keepdims=True)
    dS = A * (dA - D)                 # forward: A = softmax(S)   so here: dS = A ∘ (dA − D)
    dR = dS / np.sqrt(d_k)            # forward: S = R / √d_k     so here: dR = dS / √d_k
    dQ = dR @ K                       # forward: R = Q Kᵀ         so here: dQ = dR K
    dK = dR.T @ Q                     #                           and:     dK = dRᵀ Q
    dW_Q, dW_K, dW_V = X.T @ dQ, X.T @ dK, X.T @ dV     # forward: Q = X W_Q   so here: dW_Q = Xᵀ dQ
    dX = dQ @ W_Q.T + dK @ W_K.T + dV @ W_V.T           # X is used three times: three paths, which add
    return loss, A, O, {"dO": dO, "dV": dV, "dA": dA, "dS": dS, "dR": dR, "dQ": dQ, "dK": dK,
                        "dW_Q": dW_Q, "dW_K": dW_K, "dW_V": dW_V, "dX": dX}


loss, A, O, hand = gradients(X, W_Q, W_K, W_V)
print(f"loss {loss:.4f}")
for name, matrix in hand.items():
    show(name, matrix)

# %% [markdown]
# Follow it from the top:
#
# - **dO**: only the verb's output counts. Its gradient is o − t = [1, 1] − [2, 0] = [−1, 1]: the loss falls if the
#   first feature grows and the second shrinks.
# - **dV**: every value gets a quarter of that, since the verb looked at every word with weight 0.2500.
# - **dA**: how well each value fits the wish. 私 fits (−2: more weight on it lowers the loss), は is opposite (+2).
# - **dS**: the same, minus the average (here 0), times the weight: ∓0.5000. Its rows sum to 0.
# - **dK**: the key of 私 should move towards the verb's query [1, 1], and the key of は away from it, by 0.3536 =
#   ½/√2.
# - **dQ is exactly 0**. Moving the verb's query would change all its scores alike, as all keys are the same, and
#   softmax sees differences only. So W_Q cannot learn anything *yet*.
#
# Now the engine. It gets the forward lines and nothing else; `retain_grad()` asks it to keep the gradients on the
# way.

# %%
def by_engine(X, W_Q, W_K, W_V):
    """The same gradients, by minigrad."""
    x, w_q, w_k, w_v = (Tensor(array, requires_grad=True) for array in (X, W_Q, W_K, W_V))
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    r = q @ k.mT
    s = r / np.sqrt(d_k)
    a = F.softmax(s)
    o = a @ v
    named = {"dO": o, "dV": v, "dA": a, "dS": s, "dR": r, "dQ": q, "dK": k,
             "dW_Q": w_q, "dW_K": w_k, "dW_V": w_v, "dX": x}
    for tensor in (o, v, a, s, r, q, k):
        tensor.retain_grad()
    (0.5 * ((o[3] - target) ** 2).sum()).backward()
    return {name: tensor.grad.numpy() for name, tensor in named.items()}


engine = by_engine(X, W_Q, W_K, W_V)
worst = max(np.abs(engine[name] - hand[name]).max() for name in hand)
print(f"{len(hand)} gradients, by hand and by the engine: the largest difference is {worst:.0e}")

# %% [markdown]
# ## Learning to look
#
# Step against the gradient, with W_Q and W_K alone, so that attention has to do the work. The first step moves W_K;
# then the keys differ, dQ is no longer 0, and W_Q joins in.

# %%
w_q, w_k, history = W_Q, W_K, []
for update in range(101):
    loss, A, _, learnt = gradients(X, w_q, w_k, W_V)
    history.append(A[3])
    if update in (0, 1, 2, 10, 100):
        print(f"after {update:3d} updates: loss {loss:.4f}, the verb's weights", *(f"{a:.4f}" for a in A[3]),
              f"  largest |dW_Q| {np.abs(learnt['dW_Q']).max():.4f}")
    if update < 100:
        w_q, w_k = w_q - 0.5 * learnt["dW_Q"], w_k - 0.5 * learnt["dW_K"]
engine = by_engine(X, w_q, w_k, W_V)
print(f"and hand and engine still differ by {max(np.abs(engine[n] - learnt[n]).max() for n in learnt):.0e} at most")

# %% [markdown]
# After 100 updates the verb gives 0.9735 of its attention to 私.
#
# ## The other convention
#
# Many books write a word as a *column*, and attention as A = V · softmax(KᵀQ / √D), with softmax down each column.
# (Their A is what we call O, and their D, the width of a key, is our d_k.) Nothing is new: every matrix lies on its
# side, and the order of each product turns around, because (MN)ᵀ = NᵀMᵀ. We check it with the weights just learnt,
# which are no longer all the same.

# %%
Xc = X.T                                              # 4 features × 4 words
Qc, Kc, Vc = w_q.T @ Xc, w_k.T @ Xc, W_V.T @ Xc       # 2 × 4 each
Sc = Kc.T @ Qc / np.sqrt(d_k)                         # keys down, queries across
Ac = np.exp(Sc) / np.exp(Sc).sum(axis=0, keepdims=True)
Oc = Vc @ Ac
rows_O = gradients(X, w_q, w_k, W_V)[2]
print(f"softmax(KᵀQ/√D) and our Aᵀ differ by {np.abs(Ac - A.T).max():.0e}; "
      f"the outputs by {np.abs(Oc - rows_O.T).max():.0e}")

xc = Tensor(Xc, requires_grad=True)
qc, kc, vc = Tensor(w_q.T) @ xc, Tensor(w_k.T) @ xc, Tensor(W_V.T) @ xc
oc = vc @ F.softmax(kc.mT @ qc / np.sqrt(d_k), axis=0)
(0.5 * ((oc[:, 3] - target) ** 2).sum()).backward()
print(f"and the gradient of the columns is the gradient of the rows, transposed: "
      f"{np.abs(xc.grad.numpy() - learnt['dX'].T).max():.0e}")

# %% [markdown]
# The picture shows it all: the forward pass from left to right, and each gradient under its matrix; below, the
# weights after learning, in rows and in columns, and how the verb came to look at 私.

# %%
CELL = 0.42  # inches
figure = Figure(figsize=(9.6, 7.4))


def grid(name: str, matrix: np.ndarray, left: float, bottom: float, across: list[str], down: list[str]) -> float:
    """A matrix with its numbers, at a place in inches; where the next one may begin."""
    width, height = CELL * matrix.shape[1], CELL * matrix.shape[0]
    axes = figure.add_axes((left / 9.6, bottom / 7.4, width / 9.6, height / 7.4))
    gradient, top = name.startswith("d"), 2 if name in "XQKVO" else 1
    axes.imshow(matrix, cmap="PuOr_r" if gradient else "Blues", vmin=-1 if gradient else 0, vmax=top)
    for (i, j), value in np.ndenumerate(matrix):
        text = f"{value:.2g}" if value == round(value) else f"{value:.2f}".replace("0.", ".", 1)
        dark = abs(value) > 0.55 * top
        axes.text(j, i, text.replace("-", "−"), ha="center", va="center", fontsize=9,
                  color="white" if dark else "black")
    axes.set(title=name, xticks=range(len(across)), yticks=range(len(down)))
    axes.set_xticklabels(across, fontsize=8)
    axes.set_yticklabels(down)
    axes.tick_params(length=0)
    return left + width + 0.3


forward = {"X": X, "Q": Q, "K": K, "V": V, "A": np.full((4, 4), 0.25), "O": O}
for bottom, prefix, matrices in [(5.3, "", forward), (2.95, "d", {name: hand[f"d{name}"] for name in forward})]:
    left = 1.1
    for name, matrix in matrices.items():
        left = grid(prefix + name, matrix, left, bottom, [], WORDS if name == "X" else [])
left = grid("A after learning", A, 1.1, 0.45, WORDS, WORDS)
grid("the same, in columns", Ac, left + 0.8, 0.45, WORDS, WORDS)
lines = figure.add_axes((6.6 / 9.6, 0.6 / 7.4, 2.8 / 9.6, 1.5 / 7.4))
styles = [{"color": "#0072B2"}, {"color": "#D55E00"}, {"color": "#009E73", "linewidth": 4, "alpha": 0.5},
          {"color": "black", "linestyle": ":"}]  # the last two words fall together
for word, weights, style in zip(WORDS, np.transpose(history), styles, strict=True):
    lines.semilogx(range(1, 102), weights, label=word, **style)
lines.set(title="the verb's weights", xlabel="updates + 1", ylim=(0, 1))
lines.legend(frameon=False, fontsize=8)
figure.savefig(PICTURES / "03_attention_by_hand.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# Add a constant vector c to every key, say c = [5, −3]. What happens to the scores, to the weights, and to the
# gradient that reaches c? (A key projection with a bias, as in most models, does just this.)

# %% [markdown]
# ## The answer
#
# Query i meets c once for each key: all scores of its row rise by the same q·c. Softmax sees differences only, so the
# weights stay. If no c changes anything, then the gradient with respect to c is 0, always (up to rounding): **the
# bias of a key projection learns nothing.** In the formula: dc is the sum of the rows of dK, that is, dRᵀ Q summed
# over keys, and each row of dR sums to 0.

# %%
c = Tensor([5.0, -3.0], dtype="float64", requires_grad=True)
q, k, v = Tensor(X @ w_q), Tensor(X @ w_k) + c, Tensor(X @ W_V)
moved, weights = F.scaled_dot_product_attention(q, k, v, return_weights=True)
(0.5 * ((moved[3] - target) ** 2).sum()).backward()
print(f"weights moved by {np.abs(weights.detach().numpy() - A).max():.0e}; "
      f"largest gradient of c {np.abs(c.grad.numpy()).max():.0e}")
