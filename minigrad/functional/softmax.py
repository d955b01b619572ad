"""softmax and log_softmax: each as a composition of small steps, and as one operation with its gradient by hand."""

from __future__ import annotations

import math
from typing import Any

from minigrad import ops
from minigrad.device import xp
from minigrad.device.sums import sum_over, widened
from minigrad.engine.primitive import primitive
from minigrad.functional.compositions import tap


def softmax_by_steps(x: Any, axis: int = -1) -> Any:
    """softmax as a composition of small operations."""
    if not x.size:
        return ops.exp(x + x.sum(axis=axis, keepdims=True))  # as empty as x, and floating
    top = x.max(axis=axis, keepdims=True).detach()  # any constant would do: it cancels, but keeps exp from overflowing
    shifted = tap("shifted", x - ops.where(top == -math.inf, 0.0, top))
    exponentials = tap("exponentials", ops.exp(shifted))
    total = tap("total", exponentials.sum(axis=axis, keepdims=True))
    return exponentials / ops.where(total == 0, 1.0, total)


@primitive(floating=True, composition=softmax_by_steps, precision="float32", fresh=True)
def softmax(x, axis=-1):
    """``out = eˣ / Σ eˣ`` along `axis`: positive, summing to 1. A row of -inf alone (nothing allowed) gives zeros.

    Args:
        x: any shape, floating.
        axis: the axis that sums to 1.
    """
    if not x.size:
        return x + x.sum(axis=axis, keepdims=True)  # as empty as x; the sum looks at the axis
    wide = widened(x)
    exponentials = xp(x).exp(wide - maximum(wide, axis))
    total = sum_over(exponentials, axis, True)
    return (exponentials / (total + (total == 0))).astype(x.dtype, copy=False)  # for a row of -inf alone 0 / 1


# The Jacobian of one row is diag(a) - a aᵀ, a = out; so dx = a∘g - a (a·g) = a ∘ (g - a·g).
softmax.gradient(x=lambda g, out, axis: out * (g - (g * out).sum(axis=axis, keepdims=True)))


def maximum(x: Any, axis: int) -> Any:
    """The maximum along `axis`, which is kept; 0 for -inf, so that ``x - maximum(x)`` has no ``inf - inf``."""
    top = x.max(axis=axis, keepdims=True)
    return xp(x).where(top == -math.inf, x.dtype.type(0), top)


def log_softmax_by_steps(x: Any, axis: int = -1) -> Any:
    """log_softmax as a composition of small operations."""
    if not x.size:
        return ops.exp(x + x.sum(axis=axis, keepdims=True))
    top = x.max(axis=axis, keepdims=True).detach()
    shifted = tap("shifted", x - ops.where(top == -math.inf, 0.0, top))
    total = tap("total", ops.exp(shifted).sum(axis=axis, keepdims=True))
    return shifted - ops.log(ops.where(total == 0, 1.0, total))


@primitive(floating=True, composition=log_softmax_by_steps, precision="float32", fresh=True)
def log_softmax(x, axis=-1):
    """``out = x - log Σ eˣ`` along `axis`: the logarithm of softmax, without its underflow. A row of -inf stays so.

    Args:
        x: any shape, floating.
        axis: the axis along which softmax sums to 1.
    """
    if not x.size:
        return x + x.sum(axis=axis, keepdims=True)  # as empty as x; the sum looks at the axis
    wide = widened(x)
    shifted = wide - maximum(wide, axis)  # first: the maximum and log Σ eˣ may both be large, and cancel
    total = sum_over(xp(x).exp(shifted), axis, True)
    return (shifted - xp(x).log(total + (total == 0))).astype(x.dtype, copy=False)  # for a row of -inf alone log 1


# out = x - L(x), and dL/dx = softmax(x) = exp(out); so dx = g - exp(out) Σ g.
log_softmax.gradient(x=lambda g, out, axis: g - ops.exp(out) * g.sum(axis=axis, keepdims=True))
