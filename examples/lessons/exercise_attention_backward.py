# %% [markdown]
# # Exercise: the backward pass of attention, filled in by you
#
# Below stands the forward pass of multi-head attention in NumPy. Each of its steps has a function that shall send a
# gradient back through it. Their bodies are yours: put an expression in the place of every `None`.
#
# Run this file as often as you like:
#
#     python examples/lessons/exercise_attention_backward.py
#
# It says of each gradient whether it is right; if not, by which factor it is off, or what seems to be missing. Take the
# functions in any order: each is checked alone, with arrays of its own, so a mistake in one does not spoil the next.
#
# Three things help. A gradient has the shape of what it is the gradient *of*. A sum in the forward pass becomes a
# spreading in the backward pass, and a spreading (one weight used for every token of every sentence) becomes a sum.
# And `x.mT` transposes the last two axes of an array, whatever comes before them.
#
# Stuck? Lesson 12 and docs/backprop_through_attention.md derive every line.

# %%
import math

import numpy as np

# %% [markdown]
# ## The forward pass
#
# X holds the inputs of the queries, (B, T, D): B sentences, T tokens, D features. M holds the inputs of the keys and
# values, (B, S, D). In self-attention M is X. There are H heads of d_k = D / H features. A mask is True where a query
# may attend to a key; `kept` is True where dropout left a weight alone, and p is the probability that it did not.


# %%
def split_heads(x, num_heads):
    """(B, T, D) → (B, H, T, d_k)."""
    return x.reshape(x.shape[0], x.shape[1], num_heads, -1).swapaxes(1, 2)


def join_heads(x):
    """The inverse: (B, H, T, d_k) → (B, T, D)."""
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def attention_forward(X, M, weights, mask, kept, p, num_heads):
    """Every value on the way from X and M to Y, by its name."""
    Q = split_heads(X @ weights["WQ"] + weights["bQ"], num_heads)  # (B, H, T, d_k)
    K = split_heads(M @ weights["WK"] + weights["bK"], num_heads)  # (B, H, S, d_k)
    V = split_heads(M @ weights["WV"] + weights["bV"], num_heads)  # (B, H, S, d_k)
    S = Q @ K.mT / math.sqrt(Q.shape[-1])  # (B, H, T, S)
    Sm = np.where(mask, S, -np.inf)
    A = np.exp(Sm - Sm.max(axis=-1, keepdims=True))
    A = A / A.sum(axis=-1, keepdims=True)
    Ad = A * kept / (1 - p)  # A′, the weights after dropout
    C = join_heads(Ad @ V)  # (B, T, D)
    Y = C @ weights["WO"] + weights["bO"]
    return {"X": X, "M": M, "Q": Q, "K": K, "V": V, "A": A, "Ad": Ad, "C": C, "Y": Y}


# %% [markdown]
# ## The backward pass
#
# Last step first. `dY` is the gradient of the loss with respect to Y, and so on.


# %%
def linear_backward(dY, X, W):
    """forward: Y = X W + b, with X (B, T, D) and Y (B, T, E). It serves W_O, W_Q, W_K and W_V."""
    dX = None  # (B, T, D)
    dW = None  # (D, E): one W, used by every token of every sentence
    db = None  # (E,)
    return dX, dW, db


# %%
def context_backward(dO, Ad, V):
    """forward: O = A′ V."""
    dAd = None  # (B, H, T, S)
    dV = None  # (B, H, S, d_k)
    return dAd, dV


# %%
def dropout_backward(dAd, kept, p):
    """forward: A′ = A ∘ kept / (1 − p)."""
    dA = None  # (B, H, T, S)
    return dA


# %%
def softmax_backward(dA, A):
    """forward: A = softmax(S̄), each row for itself."""
    dSm = None  # (B, H, T, S)
    return dSm


# %%
def mask_backward(dSm, mask):
    """forward: S̄ = S where the mask is True, −∞ elsewhere."""
    dS = None  # (B, H, T, S)
    return dS


# %%
def scores_backward(dS, Q, K):
    """forward: S = Q Kᵀ / √d_k, where d_k is the last axis of Q and of K."""
    dQ = None  # (B, H, T, d_k)
    dK = None  # (B, H, S, d_k)
    return dQ, dK


# %%
def memory_backward(dM_keys, dM_values):
    """forward, in cross-attention: M goes into the keys and the values. This is what came back along the two paths."""
    dM = None  # (B, S, D)
    return dM


# %%
def self_backward(dX_queries, dX_keys, dX_values):
    """forward, in self-attention: X goes into the queries, the keys and the values."""
    dX = None  # (B, T, D)
    return dX


# %% [markdown]
# ## All together
#
# The forward pass, read from its last line to its first. Splitting heads only moves numbers, so its backward moves them
# back: it is joining them.


# %%
def attention_backward(dY, values, weights, mask, kept, p, num_heads):
    """The gradients of everything, from dY and what `attention_forward` returned."""
    X, M, Q, K, V, A, Ad, C = (values[name] for name in ("X", "M", "Q", "K", "V", "A", "Ad", "C"))
    dC, dWO, dbO = linear_backward(dY, C, weights["WO"])
    dAd, dV = context_backward(split_heads(dC, num_heads), Ad, V)
    dSm = softmax_backward(dropout_backward(dAd, kept, p), A)
    dQ, dK = scores_backward(mask_backward(dSm, mask), Q, K)
    dX_queries, dWQ, dbQ = linear_backward(join_heads(dQ), X, weights["WQ"])
    dM_keys, dWK, dbK = linear_backward(join_heads(dK), M, weights["WK"])
    dM_values, dWV, dbV = linear_backward(join_heads(dV), M, weights["WV"])
    if M is X:
        dX = dM = self_backward(dX_queries, dM_keys, dM_values)
    else:
        dX, dM = dX_queries, memory_backward(dM_keys, dM_values)
    return {"X": dX, "M": dM, "WQ": dWQ, "bQ": dbQ, "WK": dWK, "bK": dbK, "WV": dWV, "bV": dbV, "WO": dWO, "bO": dbO}


# %% [markdown]
# ## What the checker says
#
# It compares with the automatic differentiation of minigrad, on random numbers: B, T, S, H, D and d_k all differ, so
# that no mistake hides behind two equal sizes, and once more with T = S, where a forgotten transpose raises no error.

# %%
if __name__ == "__main__":
    import sys
    from pathlib import Path

    import minigrad

    sys.path.append(str(Path(minigrad.__file__).parents[1] / "examples/lessons"))  # wherever this file lies
    from check import judge

    print(judge(globals())[0])
