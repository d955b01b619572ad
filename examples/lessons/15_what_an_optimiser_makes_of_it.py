# %% [markdown]
# # Lesson 15: What an optimiser makes of a gradient
#
# The backward pass ends with a number for each weight. It says which way is down, and how steep. It does not say how
# far to go. That is the optimiser's part, and it is a larger one than it looks: of one and the same gradient, three
# optimisers make steps that differ by orders of magnitude, and in direction. This lesson writes the three down, and
# watches them in a ravine, at their first step, on a rare word, and in a Transformer.
#
# **Afterwards you know** what momentum does with a direction that stays and with one that alternates, why Adam's first
# step has the same length whatever the gradient, what its bias correction and its ε are for, how it treats weights
# that seldom have a gradient, why weight decay is not the same as an L2 penalty, and what warm-up protects.
#
# ## Three rules
#
# Let g be the gradient of a weight p, and η the learning rate. All is done for each weight by itself.
#
# - **SGD**: p ← p − ηg.
# - **Momentum** (Polyak 1964): b ← βb + g, then p ← p − ηb. The gradients are added up, the old ones fading.
# - **Adam** (Kingma and Ba 2015, arXiv:1412.6980): a running mean of g and one of g², and the step is their quotient,
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\,g \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\,g^2 \qquad
# p \leftarrow p - \eta\,\frac{\hat{m}}{\sqrt{\hat{v}} + \varepsilon}, \qquad \hat{m} = \frac{m}{1 - \beta_1^t}, \quad
# \hat{v} = \frac{v}{1 - \beta_2^t}$$
#
# for the t-th update, as a rule with β₁ = 0.9, β₂ = 0.999 and ε = 10⁻⁸. Each rule is a function that takes a gradient
# and what it remembers, and gives the step. We hold them to `minigrad.optim` over a hundred updates.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
import os
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import minigrad as mg
from minigrad import Tensor, nn, optim

from transformer import Transformer, TransformerConfig

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)
UPDATES = int(os.environ.get("LESSON_UPDATES", "100"))


def sgd(g, memory, lr):
    """The step of plain gradient descent; it remembers nothing."""
    return lr * g


def momentum(g, memory, lr, beta=0.9):
    """The step of the heavy ball; `memory` holds b."""
    memory["b"] = beta * memory.get("b", 0) + g
    return lr * memory["b"]


def adam(g, memory, lr, beta1=0.9, beta2=0.999, eps=1e-8, correct=True):
    """Adam's step, `correct` with its bias correction; `memory` holds t, m and v."""
    t = memory["t"] = memory.get("t", 0) + 1
    m = memory["m"] = beta1 * memory.get("m", 0) + (1 - beta1) * g
    v = memory["v"] = beta2 * memory.get("v", 0) + (1 - beta2) * g ** 2
    if correct:
        m, v = m / (1 - beta1 ** t), v / (1 - beta2 ** t)
    return lr * m / (np.sqrt(v) + eps)


RULES = {"SGD": (sgd, lambda params: optim.SGD(params, lr=0.1)),
         "momentum": (momentum, lambda params: optim.SGD(params, lr=0.1, momentum=0.9)),
         "Adam": (adam, lambda params: optim.Adam(params, lr=0.1))}
rng = np.random.default_rng(15)
apart = {}
for name, (rule, make) in RULES.items():
    by_hand, memory, tensor = np.ones(1000), {}, Tensor(np.ones(1000), requires_grad=True)
    optimizer = make([tensor])
    for _ in range(100):
        g = rng.normal(size=1000)
        tensor.grad = Tensor(g)
        optimizer.step()
        by_hand = by_hand - rule(g, memory, lr=0.1)
    apart[name] = np.abs(by_hand - tensor.detach().numpy()).max()
    print(f"{name:8} by hand and by minigrad.optim after 100 updates: they differ by {apart[name]:.0e}")
print("what Adam takes where nothing is said:", optimizer.defaults)

# %% [markdown]
# ## A ravine
#
# The loss ½(x² + 100y²) has a floor along x and steep walls across. Its *condition number* is κ = 100. SGD must not
# take η above 2/100, or it climbs the walls; and with such an η it creeps along the floor. The best it can do is to
# shrink the distance by (κ − 1)/(κ + 1) a step.
#
# Momentum adds gradients up. A gradient that stays the same sums to g(1 + β + β² + …) = g/(1 − β): with β = 0.9 ten
# times the step. One that changes its sign each time sums to g/(1 + β), about half of it. So it speeds along the floor
# and calms down across. What has been added up must also be braked, so it shoots past the goal and comes back. At
# its best η and β it shrinks the distance by (√κ − 1)/(√κ + 1) a step: instead of κ it feels √κ (Polyak 1964).
#
# Adam divides each direction by the size of its gradients, as though it knew the two curvatures. But only while the
# ravine runs along an axis! We turn it by 45°.

# %%
KAPPA, ROOT = 100, 10
turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
RAVINES = {"along an axis": np.diag([1.0, KAPPA]), "turned by 45°": turn @ np.diag([1.0, KAPPA]) @ turn.T}
SETTINGS = {"SGD": lambda g, memory: sgd(g, memory, 2 / (1 + KAPPA)),
            "momentum": lambda g, memory: momentum(g, memory, 0.01),
            "momentum at its best": lambda g, memory: momentum(g, memory, 4 / (ROOT + 1) ** 2,
                                                               ((ROOT - 1) / (ROOT + 1)) ** 2),
            "Adam": lambda g, memory: adam(g, memory, 0.1)}


def descend(rule, ravine: np.ndarray, start: np.ndarray, steps: int = 1000) -> np.ndarray:
    """The path of (x, y): (steps + 1, 2)."""
    path, memory = [start], {}
    for _ in range(steps):
        path.append(path[-1] - rule(ravine @ path[-1], memory))
    return np.array(path)


START = np.array([-10.0, 1.5])
paths = {}
for name, rule in SETTINGS.items():
    taken = []
    for place, ravine in RAVINES.items():
        path = descend(rule, ravine, START if place == "along an axis" else turn @ START)
        paths[name, place] = path
        taken.append(np.flatnonzero(np.linalg.norm(path, axis=1) > 0.01)[-1] + 1)
    print(f"{name:20} steps until it stays within 0.01: along an axis {taken[0]:4}, turned {taken[1]:4}")
added = {"the same": 0.0, "alternating": 0.0}
for update in range(200):
    added = {"the same": 0.9 * added["the same"] + 1, "alternating": 0.9 * added["alternating"] + (-1) ** update}
print(f"gradients of 1 added up with β = 0.9: the same {added['the same']:.3f}, "
      f"alternating {abs(added['alternating']):.3f}")

# %% [markdown]
# Turning the axes changes nothing for SGD and momentum, and costs Adam, from this start, nearly three times the steps:
# it sees one weight at a time. (A pitfall of comparisons: with β = 0.9 in place of 0, the same η means a step ten times
# as large. Many a "momentum helps" was a larger learning rate.)
#
# ## Adam's first steps
#
# At the first update m̂ = g and v̂ = g². The step is ηg/(|g| + ε): **±η, whatever the gradient's size.** Multiply the
# loss by a thousand, and Adam does not notice. It cannot take a tiny gradient for a sign that it has arrived, either;
# only ε sets a floor.
#
# Without the correction of the bias one would have m = (1 − β₁)g and v = (1 − β₂)g², both too small as they began at 0.
# But v more so, and the first step is (1 − β₁)/√(1 − β₂) = 3.162 times too *large*. It gets worse before it gets
# better. A forgotten correction is a burst at the start.

# %%
for g in (1e-9, 1e-6, 1.0, 1000.0):
    print(f"first gradient {g:5.0e}: first step {adam(g, {}, lr=1.0):.4f} η")
bursts, memory = [], {}
for _ in range(5000):
    bursts.append(adam(1.0, memory, lr=1.0, correct=False))
print(f"without correction, g = 1 throughout: step 1 is {bursts[0]:.3f} η, step {1 + np.argmax(bursts)} is "
      f"{max(bursts):.3f} η, step 1000 is {bursts[999]:.3f} η")

# %% [markdown]
# ## A rare word
#
# One row of an embedding belongs to a word that is in every batch, another to a word that is in one of 50. The gradient
# of a row is 0 in all batches without its word. SGD moves the rare word a fiftieth as far. Adam divides by √v̂, which
# for the rare word is small as well: a mean over mostly zeros, 1/√50 of what it would be. So the rare word gets about
# √50 = 7.1 times the step, whenever it occurs. Kunstner et al. (2024, arXiv:2402.19449) find in rare words, as what
# is to be predicted, a good part of what makes Adam better for language.
#
# The price: m does not forget at once, so a row goes on moving in batches that do not contain its word.

# %%
def journey(make) -> tuple[np.ndarray, float]:
    """How far both rows came in 1000 updates, and the rare row's share of moves in batches without its word."""
    words = nn.Embedding(2, 1).to(dtype="float64")
    optimizer, places = make(words.parameters()), [words.weight.numpy().copy()]
    for update in range(1000):
        optimizer.zero_grad()
        words(np.array([0, 1] if update % 50 == 0 else [0])).sum().backward()  # each word in the batch has gradient 1
        optimizer.step()
        places.append(words.weight.detach().numpy().copy())
    moves = np.abs(np.diff(places, axis=0))[:, :, 0]
    return moves.sum(axis=0), np.delete(moves, slice(None, None, 50), axis=0)[:, 1].sum() / moves[:, 1].sum()


for name, (_, make) in RULES.items():
    (frequent, rare), absent = journey(make)
    print(f"{name:8}: the frequent word moved {frequent:7.2f}, the rare one {rare:6.2f}: {frequent / rare:4.1f} to 1; "
          f"{100 * absent:3.0f} % of the rare word's way in batches without it")
print(f"√50 = {50 ** 0.5:.1f}")

# %% [markdown]
# ## Weight decay
#
# To keep weights small one can add λ/2·p² to the loss, which adds λp to the gradient: an *L2 penalty*. Or one can
# shrink the weights themselves, p ← (1 − ηλ)p, at each step: *weight decay*. For SGD these are the same. For Adam they
# are not, as it divides the λp by √v̂ as well: a weight with large gradients is hardly shrunk, one with small ones
# at full speed. AdamW keeps the two apart (Loshchilov and Hutter 2019, arXiv:1711.05101). We take two kinds of weights,
# all 1 at first, whose gradients are noise around 0.

# %%
noise = np.array([[0.01], [1.0]]) * np.ones(400)
for name, optimizer_kind in [("Adam with an L2 penalty", optim.Adam), ("AdamW", optim.AdamW)]:
    p = Tensor(np.ones((2, 400)), requires_grad=True)
    optimizer = optimizer_kind([p], lr=0.01, weight_decay=0.1)
    for _ in range(500):
        p.grad = Tensor(noise * rng.normal(size=(2, 400)))
        optimizer.step()
    quiet, loud = p.detach().numpy().mean(axis=1)
    print(f"{name:24}: mean weight where gradients are small {quiet:.3f}, where they are large {loud:.3f}")
print(f"(1 − ηλ)⁵⁰⁰ = {0.999 ** 500:.3f}")

# %% [markdown]
# ## In a Transformer
#
# Now a real model: an encoder and a decoder layer that learn to copy strings of six letters, out of ten. We compute the
# gradients of 20 batches, do not move the weights, and give the *same* gradients to all three rules. What is the 20th
# step, for each kind of weights, as a root mean square and in units of η?

# %%
WORDS, LETTERS = 13, 10  # padding, begin, end, and ten letters


def lines(rng: np.random.Generator, count: int = 32) -> np.ndarray:
    """Lines of six letters and an end: (count, 7)."""
    return np.concatenate([rng.integers(3, WORDS, size=(count, 6)), np.full((count, 1), 2)], axis=1)


def copier(norm: str, layers: int, seed: int) -> Transformer:
    """A small Transformer, fresh."""
    mg.manual_seed(seed)
    return Transformer(TransformerConfig(WORDS, WORDS, d_model=32, num_heads=2, num_encoder_layers=layers,
                                         num_decoder_layers=layers, d_ff=64, dropout=0.0, max_length=8, norm=norm))


def kind(name: str) -> str:
    """What a parameter is for."""
    endings = {"table.weight": "embeddings", "query.weight": "W_Q, W_K", "key.weight": "W_Q, W_K",
               "value.weight": "W_V, W_O", "output.weight": "W_V, W_O", "er.weight": "feed-forward",
               "norm.weight": "γ of norms", "projection.weight": "output layer", "key.bias": "key biases",
               "bias": "other biases"}
    return next(meaning for ending, meaning in endings.items() if name.endswith(ending))


model = copier("pre", layers=1, seed=0)
names = [name for name, _ in model.named_parameters()]
rng = np.random.default_rng(0)
memories = {(rule, name): {} for rule in RULES for name in names}
for _ in range(20):
    model.zero_grad()
    batch = lines(rng)
    model.loss(batch, batch).backward()
    steps = {(rule, name): RULES[rule][0](p.grad.numpy(), memories[rule, name], lr=1.0)
             for name, p in model.named_parameters() for rule in RULES}
KINDS = ("output layer", "embeddings", "W_V, W_O", "feed-forward", "γ of norms", "other biases", "W_Q, W_K",
         "key biases")
sizes = {rule: [np.sqrt(np.mean(np.square(np.concatenate(
    [steps[rule, name].ravel() for name in names if kind(name) == meaning])))) for meaning in KINDS] for rule in RULES}
print(f"{'':14}" + "".join(f"{rule:>10}" for rule in RULES))
for meaning, *found in zip(KINDS, *sizes.values(), strict=True):
    print(f"{meaning:14}" + "".join(f"{size:10.1e}" for size in found))

# %% [markdown]
# SGD moves the output layer fifteen times as far as W_Q and W_K, whose gradients have come through the softmax of the
# attention and are small (lessons 2 and 4). One η must do for all. Momentum makes all of it some eight times as large,
# since twenty batches at one point agree. Adam gives every kind the same, somewhat less than η. How much less says how
# well the batches agree: |m̂|/√v̂ is 1 if all gradients are alike, and near 0 if they are noise. Then there are the key
# biases. They are the question at the end.
#
# ## Warm-up
#
# So Adam's first steps are as large as any, for every weight at once, and their directions rest on one batch, or a few.
# Worse, its direction at first is not even that of the gradient but that of its signs. *Warm-up* lets η rise from near
# 0 over some updates, while v̂ gets to know the gradients. Lesson 13 said who needs it: the post-norm stack, whose last
# layers have large gradients. We train three layers and three, for a hundred updates, with η = 0.01, which is high; and
# with and without a warm-up over the first half.

# %%
g = np.concatenate([p.grad.numpy().ravel() for p in model.parameters()])  # of the last batch
print(f"cosine of a gradient and its signs: {g @ np.sign(g) / np.linalg.norm(g) / g.size ** 0.5:.2f}")


def train(norm: str, warm_up: int) -> list[float]:
    """The loss before each of the updates."""
    model, rng, losses = copier(norm, layers=3, seed=0), np.random.default_rng(0), []
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    schedule = optim.LambdaLR(optimizer, lambda update: min(1.0, (update + 1) / warm_up))
    for _ in range(UPDATES):
        batch = lines(rng)
        loss = model.loss(batch, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


curves = {f"{norm}-norm, {how} warm-up": train(norm, warm_up) for norm in ("post", "pre")
          for how, warm_up in (("without", 1), ("with", 50))}
print(f"guessing one of ten letters: log 10 = {np.log(LETTERS):.2f}")
for name, losses in curves.items():
    print(f"{name:26}: loss of the last ten updates {np.mean(losses[-10:]):.2f}")

# %% [markdown]
# Post-norm without warm-up learns which letters there are, and then nothing: it stays where guessing is, at log 10 =
# 2.30. The first steps have taken it to a place from which Adam finds back slowly, in many hundreds of updates (try
# LESSON_UPDATES=400). With a warm-up it is on its way down. Pre-norm learns without, and faster with. (It is the same
# with other seeds.) Liu et al. (2020, arXiv:1908.03265) find the cause in Adam's v̂, which rests on few batches at
# first, Xiong et al. (lesson 13) in the gradients of post-norm. Our four curves have room for both.

# %%
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
COLOURS = {"SGD": ORANGE, "momentum": BLUE, "Adam": GREEN}
figure = Figure(figsize=(10, 8), layout="constrained")
(floor, burst), (spread, learning) = figure.subplots(2, 2)
across, along = np.meshgrid(np.linspace(-2, 2, 200), np.linspace(-10.6, 3.5, 200))
floor.contour(along, across, 0.5 * (along ** 2 + KAPPA * across ** 2), levels=np.geomspace(0.5, 250, 9), colors="0.8",
              linewidths=0.8)
for name, marker in [("SGD", "s"), ("momentum", "o"), ("Adam", "^")]:
    floor.plot(*paths[name, "along an axis"][:41].T, marker=marker, markersize=3.5, linewidth=1, color=COLOURS[name],
               label=name)
floor.plot(0, 0, "+", color="black", markersize=12)
floor.set(title="40 steps in a ravine, κ = 100", xlabel="x, along the floor", ylabel="y, across", xlim=(-10.6, 3.5),
          ylim=(-2, 2))
floor.legend(frameon=False, loc="upper right")

burst.semilogx(range(1, 5001), bursts, color=ORANGE, label="without bias correction")
burst.axhline(1, color=GREEN, label="with it")
burst.set(title="Adam's step while the gradient is constant", xlabel="update", ylabel="step / η", ylim=(0, 7))
burst.legend(frameon=False, loc="upper right")

for (name, found), marker in zip(sizes.items(), "sov", strict=True):
    spread.semilogx(found, range(len(KINDS)), marker, color=COLOURS[name], markersize=7, label=name)
spread.set_yticks(range(len(KINDS)), KINDS)
spread.invert_yaxis()
spread.set(title="the same gradients, three steps", xlabel="size of a step / η")
spread.legend(frameon=False, loc="lower center")

for name, losses in curves.items():
    learning.plot(losses, color=ORANGE if name.startswith("post") else BLUE, linewidth=2, label=name,
                  linestyle=":" if "without" in name else "-")
learning.axhline(np.log(LETTERS), color=GREY, linestyle="--", linewidth=1, label="guessing")
learning.set(title="learning to copy", xlabel="updates", ylabel="loss", ylim=(0, 3.6))
learning.legend(frameon=False, loc="lower left", fontsize=9)
for axes in (burst, spread, learning):
    axes.grid(alpha=0.3)
figure.savefig(PICTURES / "15_what_an_optimiser_makes_of_it.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# The gradient of a key bias is 0, for every attention and every loss (lesson 3). Yet the table above gives a size for
# its steps. Where does it come from, what is Adam's ε doing there, and what would happen with a far smaller ε? Would it
# hurt?

# %% [markdown]
# ## The answer
#
# From rounding. In float32 the sums that should cancel leave some 10⁻¹⁰, of any sign. SGD makes of it what it is,
# nothing. Adam divides by √v̂, which is some 10⁻¹⁰ as well: without ε it would make full steps of it, like those of any
# weight. ε = 10⁻⁸ says *what counts as 0*, and keeps the steps near a hundredth of η.
#
# It would not hurt here, as no loss depends on a key bias. But it shows what scale invariance means: Adam cannot tell
# small from nothing. Where real gradients get near ε, by a loss divided by a large number, say, it stops being
# invariant and becomes slow; and where noise is all there is, it follows the noise at full speed.

# %%
for eps in (1e-8, 1e-20):
    model, rng = copier("pre", layers=1, seed=0), np.random.default_rng(0)
    before = {name: p.numpy().copy() for name, p in model.named_parameters()}
    optimizer = optim.Adam(model.parameters(), lr=0.001, eps=eps)
    for _ in range(20):
        batch = lines(rng)
        optimizer.zero_grad()
        model.loss(batch, batch).backward()
        optimizer.step()
    moved = {meaning: np.mean([np.abs(p.detach().numpy() - before[name]).mean() / 0.001
                               for name, p in model.named_parameters() if kind(name) == meaning]) for meaning in KINDS}
    print(f"ε = {eps:.0e}: in 20 updates key biases moved {moved['key biases']:.3f} η, "
          f"other biases {moved['other biases']:.3f} η")
