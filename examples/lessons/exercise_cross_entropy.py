# %% [markdown]
# # Exercise: the backward pass of cross-entropy, filled in by you
#
# Below stands the loss of a Transformer in NumPy: cross-entropy with label smoothing, in which padding does not count.
# Each of its steps has a function that shall send a gradient back through it. Their bodies are yours: put an expression
# in the place of every `None`.
#
# Run this file as often as you like:
#
#     python examples/lessons/exercise_cross_entropy.py
#
# It says of each gradient whether it is right; if not, by which factor it is off, or what seems to be missing. Take the
# functions in any order: each is checked alone, with arrays of its own, so a mistake in one does not spoil the next.
#
# Three things help. A gradient has the shape of what it is the gradient *of*. What the forward pass sums is spread in
# the backward pass. And `x[..., None]` adds an axis of length 1: it makes (B, T) to (B, T, 1), which can be multiplied
# with (B, T, C).
#
# Stuck? Lesson 14 and docs/gradients/losses.md derive every line.

# %%
import numpy as np

# %% [markdown]
# ## The forward pass
#
# Z holds the logits, (B, T, C): B sentences, T tokens, C classes, which are the words of the vocabulary. y holds the
# number of the right class of each token, (B, T), and `pad` where there is no token. ε is the label smoothing: the loss
# asks for 1 − ε of the right class, and for ε of all C classes alike, the right one among them.


# %%
def one_hot(y, C):
    """(B, T) → (B, T, C): 1 at the class, 0 elsewhere."""
    return np.eye(C)[y]


def cross_entropy_forward(Z, y, epsilon, pad):
    """Every value on the way from Z to the loss, by its name."""
    shifted = Z - Z.max(axis=-1, keepdims=True)
    logP = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))  # (B, T, C)
    picked = (logP * one_hot(y, Z.shape[-1])).sum(axis=-1)  # (B, T): log p of the right class
    mean = logP.mean(axis=-1)  # (B, T): that of all classes
    losses = -(1 - epsilon) * picked - epsilon * mean  # (B, T)
    counted = y != pad  # (B, T): True = a token, which counts
    loss = (losses * counted).sum() / counted.sum()  # one number
    return {"P": np.exp(logP), "y": y, "epsilon": epsilon, "counted": counted, "losses": losses, "loss": loss}


# %% [markdown]
# ## Step by step
#
# Last step first. `dloss` is what comes from above, one number: 1, if nothing follows after the loss.


# %%
def average_backward(dloss, counted):
    """forward: loss = the mean of the losses that count."""
    dlosses = None  # (B, T)
    return dlosses


# %%
def smoothing_backward(dlosses, epsilon):
    """forward: losses = −(1 − ε) · picked − ε · mean."""
    dpicked = None  # (B, T)
    dmean = None  # (B, T)
    return dpicked, dmean


# %%
def pick_backward(dpicked, y, C):
    """forward: picked = log p of class y, of each token."""
    dlogP = None  # (B, T, C): what comes back on this path; there is another, through the mean
    return dlogP


# %%
def mean_log_backward(dmean, C):
    """forward: mean = the mean of log p over the C classes, of each token."""
    dlogP = None  # (B, T, C): what comes back on this path
    return dlogP


# %%
def log_softmax_backward(dlogP, P):
    """forward: log P = Z − log Σ exp Z, each row for itself, and P is softmax(Z)."""
    dZ = None  # (B, T, C)
    return dZ


# %% [markdown]
# ## In one step
#
# All of it, from the loss to the logits, shrinks to one line. Write q for what the loss asks of each class, 1 in all.
# Then the loss of a token is −Σ q log p.


# %%
def closed_form(dloss, P, y, counted, epsilon):
    """forward: loss = the mean of −Σ q log p over the tokens that count."""
    dZ = None  # (B, T, C)
    return dZ


# %% [markdown]
# ## All together
#
# The forward pass, read from its last line to its first. log P goes two ways, so what comes back is added.


# %%
def cross_entropy_backward(dloss, values):
    """The gradient of the logits, from dloss and what `cross_entropy_forward` returned, on both ways."""
    P, y, epsilon, counted = (values[name] for name in ("P", "y", "epsilon", "counted"))
    dpicked, dmean = smoothing_backward(average_backward(dloss, counted), epsilon)
    dlogP = pick_backward(dpicked, y, P.shape[-1]) + mean_log_backward(dmean, P.shape[-1])
    return {"Z": log_softmax_backward(dlogP, P), "Z by the closed form": closed_form(dloss, P, y, counted, epsilon)}


# %% [markdown]
# ## What the checker says
#
# It compares with the automatic differentiation of minigrad, on random numbers: B, T and C all differ, so that no
# mistake hides behind two equal sizes, two of the sentences are padded, and `dloss` is not 1.

# %%
if __name__ == "__main__":
    import sys
    from pathlib import Path

    import minigrad

    sys.path.append(str(Path(minigrad.__file__).parents[1] / "examples/lessons"))  # wherever this file lies
    from check import judge

    print(judge(globals())[0])
