# %% [markdown]
# # Exercise: the backward pass of layer normalisation, filled in by you
#
# Below stands the forward pass of layer normalisation in NumPy. Each of its steps has a function that shall send a
# gradient back through it. Their bodies are yours: put an expression in the place of every `None`.
#
# Run this file as often as you like:
#
#     python examples/lessons/exercise_layer_norm.py
#
# It says of each gradient whether it is right; if not, by which factor it is off, or what seems to be missing. Take the
# functions in any order: each is checked alone, with arrays of its own, so a mistake in one does not spoil the next.
#
# Three things help. A gradient has the shape of what it is the gradient *of*. What the forward pass spreads (one γ for
# every token, one μ for every feature of a token) is summed in the backward pass, and what it sums is spread. And
# `x.sum(axis=-1, keepdims=True)` leaves an axis of length 1 behind, so that the result can be spread again.
#
# Stuck? Lesson 13 and docs/gradients/normalization.md derive every line.

# %%
import numpy as np

# %% [markdown]
# ## The forward pass
#
# X is (B, T, D): B sentences, T tokens, D features. Each token is normalised for itself: its features are shifted to
# the mean 0 and scaled to the variance 1, but for a little ε. Then each feature has a scale γ and a shift β of its own.
# r is 1/σ.


# %%
def layer_norm_forward(X, gamma, beta, eps):
    """Every value on the way from X to Y, by its name."""
    mu = X.mean(axis=-1, keepdims=True)  # (B, T, 1)
    Xc = X - mu  # (B, T, D), centred
    var = (Xc**2).mean(axis=-1, keepdims=True)  # (B, T, 1)
    r = 1 / np.sqrt(var + eps)  # (B, T, 1)
    Xhat = Xc * r  # (B, T, D), normalised
    Y = Xhat * gamma + beta
    return {"mu": mu, "Xc": Xc, "var": var, "r": r, "Xhat": Xhat, "Y": Y}


# %% [markdown]
# ## Step by step
#
# Last step first. `dY` is the gradient of the loss with respect to Y, and so on.


# %%
def scale_and_shift_backward(dY, Xhat, gamma):
    """forward: Y = X̂ ∘ γ + β, with γ and β (D,)."""
    dXhat = None  # (B, T, D)
    dgamma = None  # (D,): one γ, used by every token of every sentence
    dbeta = None  # (D,)
    return dXhat, dgamma, dbeta


# %%
def product_backward(dXhat, Xc, r):
    """forward: X̂ = Xc · r, with one r for all features of a token."""
    dXc = None  # (B, T, D): what comes back on this path; there is another, through the variance
    dr = None  # (B, T, 1)
    return dXc, dr


# %%
def root_backward(dr, r):
    """forward: r = 1 / √(var + ε). The derivative can be written with r alone."""
    dvar = None  # (B, T, 1)
    return dvar


# %%
def variance_backward(dvar, Xc):
    """forward: var = the mean of Xc² over the D features."""
    dXc = None  # (B, T, D): what comes back on this path
    return dXc


# %%
def centring_backward(dXc):
    """forward: Xc = X − μ, with one μ for all features of a token."""
    dX = None  # (B, T, D): what comes back on this path; there is another, through μ
    dmu = None  # (B, T, 1)
    return dX, dmu


# %%
def mean_backward(dmu, D):
    """forward: μ = the mean of X over its D features."""
    dX = None  # (B, T, D): what comes back on this path
    return dX


# %% [markdown]
# ## In one step
#
# All of it from X̂ to X shrinks to one line, which needs neither X nor μ nor the variance. Start from your steps, put
# one into the other, and write means for sums over D. What comes back through the mean, and what through the variance?


# %%
def closed_form(dXhat, Xhat, r):
    """forward: X̂ = (X − mean of X) · r, with r = 1 / √(variance of X + ε)."""
    dX = None  # (B, T, D)
    return dX


# %% [markdown]
# ## All together
#
# The forward pass, read from its last line to its first. Xc and X each go two ways, so what comes back is added.


# %%
def layer_norm_backward(dY, values, gamma):
    """The gradients of everything, from dY and what `layer_norm_forward` returned; that of X twice."""
    Xc, r, Xhat = (values[name] for name in ("Xc", "r", "Xhat"))
    dXhat, dgamma, dbeta = scale_and_shift_backward(dY, Xhat, gamma)
    dXc_product, dr = product_backward(dXhat, Xc, r)
    dXc_variance = variance_backward(root_backward(dr, r), Xc)
    dX_centring, dmu = centring_backward(dXc_product + dXc_variance)
    dX = dX_centring + mean_backward(dmu, Xc.shape[-1])
    return {"X": dX, "X by the closed form": closed_form(dXhat, Xhat, r), "gamma": dgamma, "beta": dbeta}


# %% [markdown]
# ## What the checker says
#
# It compares with the automatic differentiation of minigrad, on random numbers: B, T and D all differ, so that no
# mistake hides behind two equal sizes, and ε is large, so that a gradient that forgets it is seen to be wrong.

# %%
if __name__ == "__main__":
    import sys
    from pathlib import Path

    import minigrad

    sys.path.append(str(Path(minigrad.__file__).parents[1] / "examples/lessons"))  # wherever this file lies
    from check import judge

    print(judge(globals())[0])
