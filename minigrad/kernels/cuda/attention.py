"""Attention of heads where they lie, in three launches; its gradient in five.

The heads lie side by side in the features of a token, as `minigrad.kernels.attention` says. cuBLAS would need copies of
them; the kernel `product` takes strides.
"""

import math

from minigrad.device import xp
from minigrad.device.sums import sum_to
from minigrad.kernels.attention import register
from minigrad.kernels.cuda.launching import TILE, empty, launch, launch_rows


def four(x):
    """x with four axes: those in front made one, or more of length 1."""
    x = x[(None,) * (4 - x.ndim)]
    return x.reshape((math.prod(x.shape[:-3]), *x.shape[-3:]))


def strided(x):
    """The address of an array and its strides, in elements; zeros for None."""
    return [0] * 5 if x is None else [x.data.ptr, *(stride // x.itemsize for stride in x.strides)]


def product(a, b, out, alpha=1.0):
    """``out = alpha · a @ b`` of matrices (…, M, K) and (…, K, N) of any strides."""
    a, b, out = map(four, (a, b, out))
    batch, heads, rows, columns = out.shape
    launch("matrices.cu", "product", a, (batch * heads, -(-rows // TILE), -(-columns // TILE)), (16, 16),
           *strided(a), *strided(b), *strided(out), heads, rows, a.shape[3], columns, float(alpha))


def after_dropout(dropped, weights):
    """The mask of dropout for each weight, or None; and where the weights after dropout are, or will be."""
    if dropped is None:
        return None, weights
    return xp(weights).broadcast_to(dropped, weights.shape), empty(weights)


def attend(query, key, value, out, mask, dropped, p, scale, bias):
    weights = empty(query, *query.shape[:-1], key.shape[-2])
    product(query, key.mT, weights, scale)
    if bias is not None:
        weights += bias
    if mask is not None:
        mask = four(xp(weights).broadcast_to(mask, weights.shape))
    dropped, kept = after_dropout(dropped, weights)
    launch_rows("softmax", weights, weights, *strided(mask), *four(weights).shape[1:], dropped, 1 / (1 - p), kept)
    product(kept, value, out)
    return weights


def differentiate(g, query, key, value, grad_query, grad_key, grad_value, weights, dropped, p, scale, bias_shape):
    grad_scores = empty(weights)
    dropped, kept = after_dropout(dropped, weights)
    product(g, value.mT, grad_scores)  # dA'
    launch_rows("softmax_gradient", weights, grad_scores, weights, weights.shape[-1], dropped, 1 / (1 - p), kept)
    product(grad_scores, key, grad_query, scale)
    product(grad_scores.mT, query, grad_key, scale)
    product(kept.mT, g, grad_value)
    return None if bias_shape is None else sum_to(grad_scores, bias_shape)


register("cupy", attend, differentiate)
