# %% [markdown]
# # Lesson 11: Distance
#
# "The book that the girl who sat by the window gave me was …": what comes next hangs on a word far back. How does a net
# carry something over a distance, and how does it *learn* to, when the gradient has to come back over the same
# distance? Three kinds of net have three answers. Here they get the same task, the same width and the same number of
# updates. (Vaswani et al. 2017, arXiv:1706.03762, compare them in their table 1, by path and by work. We measure.)
# The training takes some ten seconds; the environment variable LESSON_UPDATES=50 makes it short, and wrong.
#
# **Afterwards you know** over which distance each kind of net carries a gradient, that it learns about as far, and
# what that costs as sequences grow.
#
# ## The task
#
# A sequence begins with one of eight symbols. Then come n fillers, drawn from eight others. At its end the net must say
# which symbol it began with. Guessing is right one time in eight. The distance is n.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
import os
import platform
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

import minigrad as mg
from minigrad import Tensor, nn, no_grad, optim
from minigrad import functional as F

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)
UPDATES = int(os.environ.get("LESSON_UPDATES", "200"))
SYMBOLS, WIDTH = 8, 32
threadpool_limits(1)  # products of matrices this small take longer on several threads


def sequences(rng: np.random.Generator, count: int, distance: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids (count, 1 + distance): a symbol, then fillers; and the symbols (count,)."""
    symbols = rng.integers(0, SYMBOLS, count)
    fillers = rng.integers(SYMBOLS, 2 * SYMBOLS, (count, distance))
    return np.column_stack([symbols, fillers]), symbols


# %% [markdown]
# ## Three nets
#
# Each turns the embedded sequence into one vector, from which a linear map reads the answer.
#
# - The **recurrent** net keeps a state. Each token changes it: h ← tanh(W_x x + W_h h). Whatever the first token said
#   must survive n such changes.
# - The **window** net sees, in each of three layers, a token and the four before it: a convolution, causal. Three
#   layers reach 3·4 = 12 tokens back.
# - **Attention** lets the last token look at all others, in one layer. It has no positions here: it must find the
#   symbol by what it is, not by where.

# %%
class Recurrent(nn.Module):
    """h ← tanh(W_x x + b + W_h h), token by token: (B, T, WIDTH) → the last h, (B, WIDTH)."""

    def __init__(self) -> None:
        super().__init__()
        self.of_input, self.of_state = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Read the sequence."""
        inputs = self.of_input(x)
        h = F.tanh(inputs[:, 0])
        for t in range(1, x.shape[1]):
            h = F.tanh(inputs[:, t] + self.of_state(h))
        return h

    def steps(self, distance: int) -> float:
        """How many maps lie between the first token and the answer."""
        return distance


class Window(nn.Module):
    """Causal convolutions, one for each dilation: (B, T, WIDTH) → the last place, (B, WIDTH)."""

    kernel = 5

    def __init__(self, dilations: tuple[int, ...] = (1, 1, 1)) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(WIDTH * self.kernel, WIDTH) for _ in dilations])
        self.dilations = dilations

    def forward(self, x: Tensor) -> Tensor:
        """Read the sequence."""
        length = x.shape[1]
        for layer, dilation in zip(self.layers, self.dilations, strict=True):
            padded = mg.pad(x, ((0, 0), ((self.kernel - 1) * dilation, 0), (0, 0)))
            seen = [padded[:, k * dilation:k * dilation + length] for k in range(self.kernel)]
            x = F.relu(layer(mg.stack(seen, axis=-1).flatten(2)))  # (B, T, WIDTH·kernel) -> (B, T, WIDTH)
        return x[:, -1]

    def steps(self, distance: int) -> float:
        """As above; infinite if no path leads so far."""
        needed = -(-distance // (self.kernel - 1))
        return needed if needed <= len(self.layers) else np.inf


class Attention(nn.Module):
    """One head of self-attention, no positions: (B, T, WIDTH) → the last place, (B, WIDTH)."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        """Read the sequence."""
        return F.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))[:, -1]

    def steps(self, distance: int) -> float:
        """As above."""
        return 1


class Recall(nn.Module):
    """Embeds the sequence, has the reader read it, and answers."""

    def __init__(self, reader: nn.Module) -> None:
        super().__init__()
        self.embed, self.reader, self.answer = nn.Embedding(2 * SYMBOLS, WIDTH), reader, nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: np.ndarray) -> Tensor:
        """(B, T) ids → (B, SYMBOLS) scores"""
        return self.answer(self.reader(self.embed(ids)))


NETS = {"recurrent": Recurrent, "window": Window, "attention": Attention}

# %% [markdown]
# ## What the gradient has to cross
#
# First, before any training, the backward pass. We take sequences of 65 tokens, and the gradient of each one's loss at
# each token's embedding. Its norm, here the mean over 64 sequences, tells how loudly the loss speaks to a token at that
# distance. If it says nothing, nothing about that token can be learnt.

# %%
def gradient_norms(name: str, length: int, count: int = 64) -> np.ndarray:
    """The mean norm of the gradient at each token of untrained nets, the last token first: (length,)."""
    mg.manual_seed(0)
    model = Recall(NETS[name]())
    ids, symbols = sequences(np.random.default_rng(0), count, length - 1)
    x = model.embed(ids)
    x.retain_grad()
    (F.cross_entropy(model.answer(model.reader(x)), symbols) * count).backward()  # the sum over the sequences
    return np.linalg.norm(x.grad.numpy(), axis=-1).mean(axis=0)[::-1]


norms = {name: gradient_norms(name, 65) for name in NETS}
print("gradient at distance ", *(f"{distance:>8}" for distance in (0, 4, 8, 12, 13, 16, 32, 64)))
for name, norm in norms.items():
    print(f"{name:21}", *(f"{norm[distance]:8.0e}" for distance in (0, 4, 8, 12, 13, 16, 32, 64)))
attention_near, attention_far = gradient_norms("attention", 17)[-1], norms["attention"][-1]
print(f"attention, distance 16 against distance 64: {attention_near / attention_far:.1f} times the gradient")

# %% [markdown]
# - Recurrent: the gradient comes back n times through a tanh and W_hᵀ, and each step shrinks it. It falls by a constant
#   factor a token, *exponentially*. (With a larger W_h it may grow instead, exponentially too.)
# - Window: up to distance 12 it arrives. At 13 it is 0, exactly.
# - Attention: it is the same at every distance (but 0: the last token also asks). Untrained weights are nearly equal,
#   about 1/T each, so a longer sequence dilutes it: four times as far, a quarter of the gradient. That is 1/n, not an
#   exponential, and it mends itself: as soon as a weight grows, its gradient does too.
#
# ## Train
#
# A fresh net for each distance, at most 200 updates of Adam, three seeds. A net whose loss falls below a hundredth has
# learnt the task, and stops there. Nothing is tuned for anyone.

# %%
DISTANCES, SEEDS = (2, 4, 8, 12, 16, 32), (0, 1, 2)


def accuracy(name: str, distance: int, seed: int, updates: int) -> float:
    """How often a net is right on unseen sequences after at most `updates` of Adam on 32 sequences each."""
    mg.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = Recall(NETS[name]())
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(updates):
        ids, symbols = sequences(rng, 32, distance)
        loss = F.cross_entropy(model(ids), symbols)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < 0.01:
            break
    ids, symbols = sequences(rng, 500, distance)
    with no_grad():
        return float((model(ids).numpy().argmax(axis=-1) == symbols).mean())


print("accuracy at distance ", *(f"{distance:>6}" for distance in DISTANCES))
learnt = {}
for name, net in NETS.items():
    learnt[name] = np.array([[accuracy(name, d, seed, UPDATES) for seed in SEEDS] for d in DISTANCES])
    print(f"{name:21}", *(f"{mean:6.2f}" for mean in learnt[name].mean(axis=1)))
    print(f"{'  steps':21}", *(f"{net_steps:>6}" for net_steps in (net().steps(d) for d in DISTANCES)))

# %% [markdown]
# Each net learns about as far as its gradient reaches. The recurrent net does it over 4 tokens, over 8 with luck (the
# picture shows the lowest and the highest of the seeds), and then guesses. (Gates lengthen its reach: that is what
# Hochreiter and Schmidhuber made the LSTM for in 1997. The chain stays as long.) The window net is perfect up to
# distance 12 and guesses beyond. Attention is perfect everywhere.
#
# ## What it costs
#
# Attention compares each token with each: its work grows with the square of the length. The others' grows in
# proportion. So we measure the forward and backward of an update on four sequences. The recurrent net has few numbers
# to compute but must do it one token after another; attention does all at once.

# %%
LENGTHS = (32, 64, 128, 256, 512, 1024)


def milliseconds(name: str, length: int) -> float:
    """The quickest of some forward and backward passes on 4 sequences."""
    model = Recall(NETS[name]())
    ids, symbols = sequences(np.random.default_rng(0), 4, length - 1)
    times = []
    for _ in range(min(8, UPDATES)):
        start = time.perf_counter()
        F.cross_entropy(model(ids), symbols).backward()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


print(f"measured now on {platform.machine()}, {platform.system()}, Python {platform.python_version()}, "
      f"NumPy {np.__version__}")
print("ms at length", *(f"{length:>7}" for length in LENGTHS))
cost = {name: [milliseconds(name, length) for length in LENGTHS] for name in NETS}
for name, times in cost.items():
    print(f"{name:12}", *(f"{ms:7.1f}" for ms in times))

# %% [markdown]
# Your numbers are your machine's. Look at the slopes in the picture: in double-logarithmic axes a slope of 1 is
# proportional, and 2 is quadratic. Attention is cheapest while sequences are short; then its line steepens, and crosses
# that of the window net.

# %%
LOOKS = {"recurrent": ("#D55E00", "o"), "window": ("#E69F00", "s"), "attention": ("#0072B2", "^")}
figure = Figure(figsize=(9, 7), layout="constrained")
(learning, path), (back, price) = figure.subplots(2, 2)
for name, (colour, marker) in LOOKS.items():
    look = {"color": colour, "marker": marker, "label": name}
    low, mean, high = learnt[name].min(axis=1), learnt[name].mean(axis=1), learnt[name].max(axis=1)
    learning.errorbar(DISTANCES, mean, (mean - low, high - mean), capsize=3, **look)
    path.plot(DISTANCES, [NETS[name]().steps(d) for d in DISTANCES], **look)
    reached = np.flatnonzero(norms[name])
    back.plot(reached, norms[name][reached], **look | {"marker": ""})
    price.plot(LENGTHS, cost[name], **look)
learning.axhline(1 / SYMBOLS, color="0.5", linestyle=":", label="guessing")
learning.set(title="accuracy (bars: lowest and highest of 3 seeds)", ylabel="accuracy", ylim=(0, 1.05))
path.set(title="steps from the first token to the answer", ylabel="steps", yscale="log")
back.plot(12, norms["window"][12], color="#E69F00", marker="x", markersize=10)
back.annotate("beyond 12 exactly 0", (12, norms["window"][12]), (8, 4), textcoords="offset points")
back.set(title="gradient of the loss at a token, untrained", ylabel="norm", yscale="log")
price.set(title="time of an update on 4 sequences", xlabel="length (tokens)", ylabel="ms", xscale="log", yscale="log")
price.set_xticks(LENGTHS, LENGTHS, minor=False)
for axes in (learning, path):
    axes.set(xlabel="distance (tokens)", xscale="log")
    axes.set_xticks(DISTANCES, DISTANCES)
back.set(xlabel="distance (tokens)")
for axes in (learning, path, back, price):
    axes.minorticks_off()
    axes.grid(alpha=0.3)
learning.legend(frameon=False, loc="center left")
figure.savefig(PICTURES / "11_distance.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# Windows are cheap. How many layers of this window net would reach 64 tokens back? And if each layer may *skip*, taking
# every second, every fourth, every eighth token? How does that compare with one attention?

# %% [markdown]
# ## The answer
#
# Each layer adds (5 − 1)·1 = 4 tokens, so 64 need 16 layers. With dilations 1, 2, 4, 8, 16 the layers add 4, 8, 16, 32,
# 64: the sum after L layers is 4·(2ᴸ − 1), and five layers reach 124. The path grows with the logarithm of the
# distance: between the chain of the recurrent net and the single step of attention. The gradient finds how far each
# really reaches: the farthest token at which it is not zero.

# %%
def reach(reader: nn.Module, length: int = 150) -> int:
    """The distance of the farthest token at which the gradient of the reader's output is not exactly zero."""
    x = Tensor(np.random.default_rng(0).normal(size=(1, length, WIDTH)), requires_grad=True)
    reader.to(dtype="float64")(x).sum().backward()
    return int(length - 1 - np.flatnonzero(x.grad.numpy().any(axis=(0, 2)))[0])


mg.manual_seed(0)
for dilations in [(1,), (1, 1), (1, 1, 1), (1,) * 16, (1, 2), (1, 2, 4), (1, 2, 4, 8), (1, 2, 4, 8, 16)]:
    kind = "skipping" if len(set(dilations)) > 1 else "plain"
    print(f"{len(dilations):2} {kind} layer(s) reach {reach(Window(dilations))} tokens back")
print(f"one attention reaches {reach(Attention())}, all there are")
