"""Attention in place, and of several heads where they lie.

The heads lie side by side in the features of a token: (B, T, D) is read as (B, T, H, D/H). The products take each head
where it lies, a row being D features long of which D/H are its own, and write their results side by side again.
"""

import numpy as np

from minigrad.device import xp
from minigrad.device.sums import sum_to
from minigrad.engine.node import Saved
from minigrad.functional import attention as definitions
from minigrad.functional.softmax import row_maximum
from minigrad.kernels.sums import row_dot, row_sums

SHORT = 512  # elements of a row, from which on NumPy finds its maximum in a fraction of the time that exp takes


def register(module, attend, differentiate):
    """Make bodies of `attention` and `attention_of_heads` for arrays of `module`, with an axis for the heads.

    Args:
        attend: of query (…, T, d), key (…, S, d) and value (…, S, v), writes the output (…, T, v) into its fourth
            argument and returns the weights (…, T, S).
        differentiate: of the gradient g (…, T, v) and these, writes the gradients of query, key and value into three of
            its arguments and returns that of the bias, None for the shape None.
    """
    def split(arrays, num_heads):
        return arrays if num_heads is None else [definitions.split_heads(x, num_heads) for x in arrays]

    def forward(query, key, value, mask, dropped, p, scale, bias, num_heads=None):
        out = xp(query).empty((*query.shape[:-1], value.shape[-1]), query.dtype)
        weights = attend(*split([query, key, value, out], num_heads), mask, dropped, p, scale, bias)
        return out, Saved(weights=weights, num_heads=num_heads)

    def gradient(g, query, key, value, dropped, p, scale, bias_shape, saved, needs):
        out = [xp(g).empty(x.shape, g.dtype) for x in (query, key, value)]
        grad_bias = differentiate(*split([g, query, key, value, *out], saved.num_heads), saved.weights, dropped, p,
                                  scale, bias_shape if needs.bias else None)
        return *out, grad_bias

    for form in (definitions.attention, definitions.attention_of_heads):
        form.faster(module)(forward).joint_gradient("query", "key", "value", "bias")(gradient)


def attend(query, key, value, out, mask, dropped, p, scale, bias):
    scaled = query * scale  # smaller than the scores

    def scores():
        product = scaled @ key.mT
        if bias is not None:
            product += bias
        return product

    weights, total = exponentials(scores, mask)
    weights /= total
    np.matmul(weights if dropped is None else weights * dropped, value, out=out)
    if dropped is not None:
        out *= 1 / (1 - p)  # A' V is smaller than A'
    return weights


def exponentials(scores, mask):
    """The numerators (…, D) and the denominators (…, 1) of a softmax: 0 where the boolean `mask` is False.

    A softmax stays what it is if a number is subtracted from a row. Its maximum always does, but to find that in short
    rows takes NumPy eight times as long as exp. It is needed only where a sum would overflow or vanish: so short rows
    are first taken as they are, and once more if a sum turns out too large or too small.

    Args:
        scores: computes the scores (…, D), an array that is overwritten.
        mask: broadcastable to them, or None.
    """
    x = scores()
    if x.shape[-1] < SHORT:
        if mask is not None:
            x += np.where(mask, x.dtype.type(0), -np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            total = row_sums(np.exp(x, out=x))
        if ((total > 1e-10) & (total < 1e15)).all():
            return x, total
        x = scores()
    if mask is not None:
        x = np.where(mask, x, -np.inf)
    x -= row_maximum(x, -1)
    total = row_sums(np.exp(x, out=x))
    return x, total + (total == 0)


def differentiate(g, query, key, value, grad_query, grad_key, grad_value, weights, dropped, p, scale, bias_shape):
    kept = weights
    if dropped is not None:  # A' = A ∘ M / (1 - p): the factor, of all that follows, goes to dO, which is smaller
        kept, g = weights * dropped, g * (1 / (1 - p))
    np.matmul(kept.mT, g, out=grad_value)
    grad_scores = g @ value.mT  # dA'; from here on, in place
    if dropped is not None:
        grad_scores *= dropped
    grad_scores -= row_dot(weights, grad_scores)
    grad_scores *= weights
    grad_bias = None if bias_shape is None else sum_to(grad_scores, bias_shape).copy()
    grad_scores *= scale
    np.matmul(grad_scores, key, out=grad_query)
    np.matmul(grad_scores.mT, query, out=grad_key)
    return grad_bias


register("numpy", attend, differentiate)
