# %% [markdown]
# # Lesson 14: Cross-entropy
#
# Every gradient of the lessons before came "from above". Here is where it starts: at the loss that compares what a
# model says with what was true. A language model says a probability for each word of its vocabulary, and the loss asks
# for one of them. Its gradient is the shortest formula of the whole backward pass, p − y. This lesson shows why, and
# how one can still get it wrong.
#
# **Afterwards you know** why the gradient is p − y, why a squared error would leave a confidently wrong model in peace,
# how to compute the loss without overflow, what label smoothing aims at and why its loss never comes to 0, and over
# what to take the mean when sentences have different lengths.
#
# ## By hand
#
# A model gives a score to each of C words, its *logits* z. Softmax makes probabilities p of them (lesson 2), and the
# loss is minus the logarithm of the one that the true word t got:
#
# $$p_j = \frac{e^{z_j}}{\sum_k e^{z_k}} \qquad L = -\log p_t = \log \sum_k e^{z_k} - z_t$$
#
# Do not derive it through the softmax. Look at the right-hand side: the derivative of the first term by zⱼ is pⱼ, that
# of the second is −1 at the true word. With y for the one-hot vector of t:
#
# $$dz = p - y$$
#
# Through the softmax it comes out the same, and one sees what happens. The gradient at p is 0 but for dpₜ = −1/pₜ. The
# softmax makes of it p ∘ (dp − Σ p dp), and Σ p dp = −1, whatever pₜ is. So at the true word stands pₜ(−1/pₜ + 1) =
# pₜ − 1, at each other one pⱼ: **the small factor of the softmax and the large one of the logarithm cancel.**

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


def softmax(z: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


WORDS, TRUE = ["cat", "dog", "bird", "fish"], 1
z, y = np.array([2.0, 1.0, 0.0, -1.0]), np.eye(4)[TRUE]
p = softmax(z)
loss = np.log(np.exp(z).sum()) - z[TRUE]
dp = -y / p
dz = p * (dp - (p * dp).sum())

logits = Tensor(z[None], requires_grad=True)
by_engine = F.cross_entropy(logits, [TRUE])
by_engine.backward()
for name, row in [("p", p), ("y", y), ("p − y", p - y), ("by way of dp", dz)]:
    print(f"{name:13}", " ".join(f"{value:8.4f}" for value in row))
print(f"loss {loss:.4f}; the engine's differs by {abs(by_engine.item() - loss):.0e}, "
      f"its gradient by {np.abs(logits.grad.numpy()[0] - (p - y)).max():.0e}")

# %% [markdown]
# Read it as an account. The true word is owed 0.7631, and the others pay: "cat", which the model believed, 0.6439 of
# it. The sum is 0. Nobody's gradient is larger than 1, and it gets small in one way only: by being right.
#
# ## Why not a squared error?
#
# p − y is also the gradient of ½‖p − y‖² *at p*. Why not take that loss? Since the softmax comes after (going
# backwards), and it is deaf when it is sure. Let the model prefer a wrong word by a margin of m, and look at the length
# of dz. A third loss joins in, by a common mistake: **softmax twice**. Someone ends the model in a softmax and
# gives the probabilities to a cross-entropy, which takes them for logits.


# %%
def cross_entropy(z: Tensor) -> Tensor:
    """What one should take."""
    return F.cross_entropy(z, [TRUE])


def squared_error(z: Tensor) -> Tensor:
    """½‖p − y‖²."""
    return 0.5 * ((F.softmax(z) - y) ** 2).sum()


def softmax_twice(z: Tensor) -> Tensor:
    """The cross-entropy of probabilities in the place of logits."""
    return F.cross_entropy(F.softmax(z), [TRUE])


LOSSES = {"cross-entropy": cross_entropy, "squared error": squared_error, "softmax twice": softmax_twice}


def gradient(loss, z: np.ndarray) -> np.ndarray:
    """dz of one row of logits."""
    logits = Tensor(z[None], requires_grad=True)
    loss(logits).backward()
    return logits.grad.numpy()[0]


def wrong_by(margin: float) -> np.ndarray:
    """Logits that prefer word 0, where word 1 is true, by this margin."""
    return np.array([margin, 0.0, 0.0, 0.0])


print("|dz| when wrong by   ", *(f"{margin:>8}" for margin in (0, 2, 5, 10, 20)), "  updates until right, from 8")
for name, loss in LOSSES.items():
    state, updates = wrong_by(8.0), 0
    while state.argmax() != TRUE and updates < 20000:
        state, updates = state - gradient(loss, state), updates + 1
    print(f"{name:21}", *(f"{np.linalg.norm(gradient(loss, wrong_by(m))):8.1e}" for m in (0, 2, 5, 10, 20)),
          f"  {updates}")
print(f"softmax twice: the smallest loss with 4 words {np.log(np.e + 3) - 1:.4f}, with 10 {np.log(np.e + 9) - 1:.4f}, "
      f"with 37,000 {np.log(np.e + 36999) - 1:.4f}")

# %% [markdown]
# Where the model is sure, the other two learn the less the worse it errs. And softmax twice can be told from afar:
# probabilities lie between 0 and 1, so the second softmax never sees a lead above 1, and even a perfect model has a
# loss of log(e + C − 1) − 1. A classifier of ten classes whose loss settles at 1.4612 has a softmax too many.
#
# ## Without overflow
#
# In float32 the exponential is infinite from 89 on, and 0 below −104. So a logit of 100 makes naive code say NaN. A
# softmax that takes the largest logit off first is safe; but the *logarithm of that softmax* is not, as a small
# probability is rounded to 0 before the logarithm can bring it back. The remedy is to do both in one function:
#
# $$\log p_t = (z_t - m) - \log \sum_k e^{z_k - m}, \qquad m = \max_k z_k$$
#
# The sum is between 1 and C, and nothing can go wrong. (Its other name is the *log-sum-exp trick*.)

# %%
large = np.array([[200.0, 0.0, 50.0]], dtype="float32")  # the true word is the second
with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
    e = np.exp(large)
    print("exp / sum of exp:     p =", e[0] / e.sum())
    for name, loss in [("log of a softmax", lambda z: -F.softmax(z).log()[0, 1]),
                       ("both in one", lambda z: F.cross_entropy(z, [1]))]:
        logits = Tensor(large, requires_grad=True)
        value = loss(logits)
        value.backward()
        print(f"{name:21} loss {value.item():5.1f}, dz =", logits.grad.numpy()[0])

# %% [markdown]
# ## Label smoothing
#
# With a one-hot target the loss falls for ever: there is always a little to win by making zₜ still larger. *Label
# smoothing* (Szegedy et al. 2016, arXiv:1512.00567) asks for something that can be reached. A share ε of the target is
# given to all words alike:
#
# $$q = (1 - \varepsilon)\,y + \frac{\varepsilon}{C} \qquad L = -\sum_j q_j \log p_j = \log \sum_k e^{z_k} - \sum_j q_j
# z_j \qquad dz = p - q$$
#
# The same formula, by the same look at the right-hand side. The gradient is 0 where p = q, at *finite* logits: the true
# word leads by log(1 + C(1 − ε)/ε). A model that is surer than that is called back. And there the loss is not 0 but
# −Σ q log q, the *entropy* of q. No model does better.


# %%
def smoothed(words: int, epsilon: float, true: int = 0) -> np.ndarray:
    """q: (words,)"""
    return (1 - epsilon) * np.eye(words)[true] + epsilon / words


print(" words    ε   lead at the optimum   smallest loss   loss there by the engine   largest |dz|")
for words, epsilon in [(4, 0.1), (4, 0.3), (37000, 0.1)]:
    lead, q = np.log(1 + words * (1 - epsilon) / epsilon), np.full(words, epsilon / words)
    q[0] += 1 - epsilon
    logits = Tensor(np.eye(1, words) * lead, requires_grad=True)
    value = F.cross_entropy(logits, [0], label_smoothing=epsilon)
    value.backward()
    print(f"{words:6} {epsilon:4}   {lead:19.4f}   {-(q * np.log(q)).sum():13.4f}   {value.item():24.4f}   "
          f"{np.abs(logits.grad.numpy()).max():12.0e}")
q = smoothed(4, 0.1, TRUE)
logits = Tensor(z[None], requires_grad=True)
F.cross_entropy(logits, [TRUE], label_smoothing=0.1).backward()
print(f"and at our logits: dz differs from p − q by {np.abs(logits.grad.numpy()[0] - (p - q)).max():.0e}")

# %% [markdown]
# With the 37,000 words and the ε = 0.1 of Vaswani et al. (2017, arXiv:1706.03762) the smallest loss is 1.3769. Two
# pitfalls follow. Do not compare a training loss that is smoothed with a validation loss that is not. And do not make a
# perplexity of a smoothed loss. *Perplexity* is the exponential of the mean −log pₜ, without smoothing: among how many
# equally likely words the model seems to choose. A model that knows nothing has the perplexity C.
#
# ## The mean over what?
#
# Now sentences, a logit row for each token. They differ in length, the short ones are padded, and padding must count
# for nothing. We take two sentences, of 2 and of 8 words, with random logits, as though from a model that has learnt
# one thing well: to say `<pad>` after the end. Three ways of taking the mean, and what each token weighs in it.

# %%
PAD, rng = 0, np.random.default_rng(14)
target = rng.integers(1, 6, size=(2, 8))
target[0, 2:] = PAD
table = rng.normal(size=(2, 8, 6))
table[0, 2:, PAD] += 8
real = target != PAD
losses = F.cross_entropy(Tensor(table), target, reduction="none").numpy()
weights = {"over real tokens": real / real.sum(), "of the sentences' means": real / real.sum(axis=1, keepdims=True) / 2,
           "over all places": np.full((2, 8), 1 / 16)}
for name, weight in weights.items():
    value = (weight * losses).sum()
    print(f"mean {name:24} {value:.4f}, perplexity {np.exp(value):6.3f}; a word of the short sentence weighs "
          f"{weight[0, 0]:.4f}, of the long one {weight[1, 0]:.4f}, padding {weight[0, 7]:.4f}")
ignored = F.cross_entropy(Tensor(table), target, ignore_index=PAD).item()
print(f"F.cross_entropy with ignore_index=PAD: {ignored:.4f}")

# %% [markdown]
# The mean over all places is the mistake: the loss looks good, since padding is easy, and it changes with the longest
# sentence of the batch. The other two are choices. Over tokens, each word counts alike, and a perplexity means what it
# says. Over sentences, a word of the short one weighs four times as much here.
#
# **The choice is easily made by accident.** To save memory, many add the gradients of several small batches before an
# update, each divided by *its own* number of tokens: and have the mean of means. Divide sums by the number of all
# tokens instead. We do both, with one small layer W and our two sentences as two batches.

# %%
X, W = rng.normal(size=(2, 8, 5)), rng.normal(size=(5, 6))


def layer_gradient(rows: slice, reduction: str) -> np.ndarray:
    """dW for the sentences in `rows`."""
    weight = Tensor(W, requires_grad=True)
    F.cross_entropy(Tensor(X[rows]) @ weight, target[rows], ignore_index=PAD, reduction=reduction).backward()
    return weight.grad.numpy()


whole = layer_gradient(slice(0, 2), "mean")
parts = {"sums over the number of all tokens": sum(layer_gradient(slice(i, i + 1), "sum") for i in (0, 1)) / real.sum(),
         "mean of the two means": sum(layer_gradient(slice(i, i + 1), "mean") for i in (0, 1)) / 2}
for name, found in parts.items():
    cosine = (found * whole).sum() / np.linalg.norm(found) / np.linalg.norm(whole)
    print(f"{name:35} cosine with the gradient of one batch {cosine:.4f}, largest difference "
          f"{np.abs(found - whole).max():.0e}")

# %% [markdown]
# The picture: the account of our first row; how much of an error comes back, for the three losses; where smoothing puts
# the optimum; and below, what each token weighs in the three means, the short sentence above the long one.

# %%
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
figure = Figure(figsize=(10, 6), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[3, 1])
account, deaf, smooth = above.subplots(1, 3)
for shift, values, colour, label in [(-0.27, p, BLUE, "p, said"), (0, y, "0.75", "y, true"),
                                     (0.27, p - y, ORANGE, "p − y, gradient")]:
    account.bar(np.arange(4) + shift, values, width=0.25, color=colour, label=label)
account.axhline(0, color="black", linewidth=0.8)
account.set_xticks(range(4), WORDS)
account.set(title="what is said, true, and sent back", ylim=(-1, 1.65))
account.legend(frameon=False, loc="upper right")

margins = np.linspace(0, 20, 81)
for (name, loss), colour, style in zip(LOSSES.items(), (BLUE, ORANGE, GREEN), ("-", "-", "--"), strict=True):
    deaf.semilogy(margins, [np.linalg.norm(gradient(loss, wrong_by(margin))) for margin in margins], color=colour,
                  linestyle=style, label=name)
deaf.set(xlabel="wrong by a margin of", ylabel="‖dz‖", title="the worse, the less", ylim=(1e-9, 10))
deaf.legend(frameon=False, loc="lower left")

leads = np.linspace(-1, 12, 131)
rows = np.stack([leads, *np.zeros((3, len(leads)))], axis=1)
for epsilon, colour in [(0.0, GREY), (0.1, BLUE), (0.3, ORANGE)]:
    q = smoothed(4, epsilon)
    smooth.plot(leads, np.log(np.exp(rows).sum(axis=1)) - rows @ q, color=colour, label=f"ε = {epsilon:g}")
    if epsilon:
        smooth.plot(np.log(q[0] / q[1]), -(q * np.log(q)).sum(), "o", color=colour)
smooth.set(xlabel="lead of the true word's logit", ylabel="loss", ylim=(0, 2.4),
           title="smoothing: the optimum is finite")
smooth.legend(frameon=False)
for axes in (deaf, smooth):
    axes.grid(alpha=0.3)
for axes, (name, weight) in zip(below.subplots(1, 3), weights.items(), strict=True):
    axes.imshow(weight, cmap="Blues", vmin=0, vmax=0.3)
    for (sentence, place), value in np.ndenumerate(weight):
        text = f"{value:.4g}".removeprefix("0") if value else "0"
        axes.text(place, sentence, text, ha="center", va="center", fontsize=7.5,
                  color="white" if value > 0.18 else "black" if real[sentence, place] else ORANGE)
    axes.set(title=f"mean {name}", xticks=[], yticks=[0, 1], yticklabels=["2 words", "8 words"])
    axes.tick_params(length=0)
below.suptitle("weight of each token; the padding has orange numbers", fontsize=10)
figure.savefig(PICTURES / "14_cross_entropy.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# A new model of 37,000 words begins its training with a loss of 14. Another one of as many words, trained with label
# smoothing of 0.1, reports a training loss of 1.2. Is anything wrong with either?

# %% [markdown]
# ## The answer
#
# With both. A new model knows nothing, so it should say 1/C of each word, and its loss should be log C = 10.52. At 14
# it is worse than ignorant: its logits differ widely, for no reason. If they are normally distributed with the standard
# deviation s, the loss is about log C + s²/2, and 14 means s = 2.64. The last layer is initialised too large, or a
# scale is missing before it.
#
# The other loss is below the entropy of its target, 1.3769, and no model gets below that. So it is not the mean of a
# smoothed loss over real tokens: smoothing is off, or padding is counted in.
#
# Two numbers to know by heart before any training: where the loss must begin, and where it must end.
#
# Now you: the [exercise on cross-entropy](exercise_cross_entropy.py) leaves every gradient of it to you.

# %%
for deviation in (0.0, 1.0, 2.64):
    logits = Tensor(deviation * rng.normal(size=(1, 37000)))
    found = F.cross_entropy(logits, [0], label_smoothing=1.0).item()  # the mean over all that may be true
    print(f"logits of standard deviation {deviation:4}: loss {found:.2f}; log C + s²/2 = "
          f"{np.log(37000) + deviation ** 2 / 2:.2f}")
