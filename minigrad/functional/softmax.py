"""softmax and log_softmax."""

from __future__ import annotations

import math

from minigrad import ops
from minigrad.device import xp
from minigrad.device.sums import narrowed, sum_over, widened
from minigrad.engine.primitive import primitive
from minigrad.functional.compositions import tap


@primitive
def row_maximum(x, axis):
    """The maximum along `axis`, which is kept; 0 for -inf, so that ``x - row_maximum(x)`` has no ``inf - inf``.

    It has no gradient: any constant would do in its place, since it cancels, but it keeps exp from overflowing.
    """
    axis = axis if x.ndim else None  # CuPy knows no axis of a number
    top = x.max(axis=axis, keepdims=True) if x.size else x.sum(axis=axis, keepdims=True)
    return xp(x).where(top == -math.inf, x.dtype.type(0), top)


row_maximum.no_gradient()


@primitive(floating=True, composite=True, precision="float32", fresh=True)
def softmax(x, axis=-1):
    """``out = eˣ / Σ eˣ`` along `axis`: positive, summing to 1. A row of -inf alone (nothing allowed) gives zeros.

    Args:
        x: any shape, floating.
        axis: the axis that sums to 1.
    """
    wide = widened(x)
    shifted = tap("shifted", wide - row_maximum(wide, axis))
    exponentials = tap("exponentials", ops.exp(shifted))
    total = tap("total", sum_over(exponentials, axis, True))
    return narrowed(exponentials / (total + (total == 0)), x.dtype)  # for a row of -inf alone 0 / 1


# The Jacobian of one row is diag(a) - a aᵀ, a = out; so dx = a∘g - a (a·g) = a ∘ (g - a·g).
softmax.gradient(x=lambda g, out, axis: out * (g - sum_over(widened(g) * out, axis, True)))


@primitive(floating=True, composite=True, precision="float32", fresh=True)
def log_softmax(x, axis=-1):
    """``out = x - log Σ eˣ`` along `axis`: the logarithm of softmax, without its underflow. A row of -inf stays so.

    Args:
        x: any shape, floating.
        axis: the axis along which softmax sums to 1.
    """
    wide = widened(x)
    shifted = tap("shifted", wide - row_maximum(wide, axis))  # first: it and log Σ eˣ may both be large, and cancel
    total = tap("total", sum_over(ops.exp(shifted), axis, True))
    return narrowed(shifted - ops.log(total + (total == 0)), x.dtype)  # for a row of -inf alone log 1


# out = x - L(x), and dL/dx = softmax(x) = exp(out); so dx = g - exp(out) Σ g.
log_softmax.gradient(x=lambda g, out, axis: g - ops.exp(out) * sum_over(widened(g), axis, True))
