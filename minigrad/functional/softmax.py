"""softmax and log_softmax: the composition one steps through, and its fused twin."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import ops
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.functional.compositions import tap
from minigrad.functional.sums import has_blas, row_sums
from minigrad.precision.half import as_narrow, widened


def softmax_by_steps(x: Any, axis: int = -1) -> Any:
    """softmax as a composition of small operations."""
    if not x.size:
        return ops.exp(x)  # as empty as x, and floating
    top = x.max(axis=axis, keepdims=True).detach()  # any constant would do: it cancels, but keeps exp from overflowing
    shifted = tap("shifted", x - ops.where(top == -math.inf, 0.0, top))
    exponentials = tap("exponentials", ops.exp(shifted))
    total = tap("total", exponentials.sum(axis=axis, keepdims=True))
    return exponentials / ops.where(total == 0, 1.0, total)


@primitive(floating=True, composition=softmax_by_steps, precision="float32")
def softmax(x, axis=-1):
    """``out = eˣ / Σ eˣ`` along `axis`: positive, summing to 1. A row of -inf alone (nothing allowed) gives zeros.

    Args:
        x: any shape, floating.
        axis: the axis that sums to 1.
    """
    if not x.size:
        return x.copy()
    wide = widened(x)
    if axis in (-1, x.ndim - 1):  # `least`: so that small probabilities do not vanish
        out, total, _ = exponentials(wide.copy() if wide is x else wide, None, lambda: widened(x), least=1e-2)
    else:
        out, total, _ = shifted_exponentials(wide, axis)
    out /= total
    return as_narrow(out, x)


SHORT = 512  # elements of a row, from which on NumPy finds its maximum in a fraction of the time that exp takes


def exponentials(x: Any, mask: Any, again: Callable[[], Any], least: float = 1e-10) -> tuple[Any, Any, Any]:
    """The numerators and the denominators of a softmax along the last axis, 0 where the boolean `mask` is False.

    A softmax stays what it is if a number is subtracted from a row. Its maximum always does, but to find that in short
    rows takes NumPy as long as exp itself. It is needed only where a sum would overflow or vanish: so a short row is
    first taken as it is, and rows whose sum turns out too large or too small are computed once more.

    Args:
        x: (…, D), at least one element; overwritten.
        mask: broadcastable to x, or None.
        again: computes x anew.
        least: the smallest sum of plain exponentials to go on with. What is 1e-38 / least times as likely as all else,
            or less, counts as 0 in float32; attention and losses, which go on with sums, do not see that.

    Returns:
        ``exp(x - shift)`` (…, D), its sums (…, 1), 1 where nothing is allowed, and the shift: a number, or (…, 1).
    """
    if not has_blas(x):
        return shifted_exponentials(x if mask is None else masked(x, mask), out=x)
    if mask is not None:
        x += np.where(mask, x.dtype.type(0), x.dtype.type(-math.inf))
    if x.shape[-1] >= SHORT:
        out, total, top = shifted_exponentials(x, out=x)
        if mask is not None and np.isnan(top).any():  # of an infinity, or a NaN, that was to be masked
            return shifted_exponentials(masked(again(), mask), out=x)
        return out, total, top
    with np.errstate(over="ignore", invalid="ignore"):
        total = row_sums(np.exp(x, out=x))
    in_range = (total > least) & (total < 1e15)
    if in_range.all():
        return x, total, 0.0
    shifted, sums, top = shifted_exponentials(again() if mask is None else masked(again(), mask))
    np.copyto(x, shifted, where=~in_range)
    np.copyto(total, sums, where=~in_range)
    return x, total, np.where(in_range, x.dtype.type(0), top)


def shifted_exponentials(x: Any, axis: int = -1, out: Any = None) -> tuple[Any, Any, Any]:
    """``exp(x - max x)``, its sums along `axis`, 1 for a row of -inf alone (that gives zeros), and the maxima."""
    namespace = xp(x)
    top = x.max(axis=axis, keepdims=True)
    top = namespace.where(top == -math.inf, x.dtype.type(0), top)
    out = namespace.subtract(x, top, out=out)
    namespace.exp(out, out=out)
    total = row_sums(out) if axis == -1 else out.sum(axis=axis, keepdims=True)
    return out, namespace.where(total == 0, x.dtype.type(1), total), top


def masked(x: Any, mask: Any) -> Any:
    """x where the mask is True, -inf elsewhere."""
    return xp(x).where(mask, x, x.dtype.type(-math.inf))


# The Jacobian of one row is diag(a) - a aᵀ, a = out; so dx = a∘g - a (a·g) = a ∘ (g - a·g).
softmax.gradient(x=lambda g, out, axis: out * (g - (g * out).sum(axis=axis, keepdims=True)))


def log_softmax_by_steps(x: Any, axis: int = -1) -> Any:
    """log_softmax as a composition of small operations."""
    if not x.size:
        return ops.exp(x)
    top = x.max(axis=axis, keepdims=True).detach()
    shifted = tap("shifted", x - ops.where(top == -math.inf, 0.0, top))
    total = tap("total", ops.exp(shifted).sum(axis=axis, keepdims=True))
    return shifted - ops.log(ops.where(total == 0, 1.0, total))


@primitive(floating=True, composition=log_softmax_by_steps, precision="float32")
def log_softmax(x, axis=-1):
    """``out = x - log Σ eˣ`` along `axis`: the logarithm of softmax, without its underflow. A row of -inf stays so.

    Args:
        x: any shape, floating.
        axis: the axis along which softmax sums to 1.
    """
    namespace = xp(x)
    if not x.size:
        return x.copy()
    wide = widened(x)
    top = wide.max(axis=axis, keepdims=True)
    out = wide - namespace.where(top == -math.inf, wide.dtype.type(0), top)  # first: both may be large and cancel
    total = namespace.exp(out).sum(axis=axis, keepdims=True)
    out -= namespace.log(namespace.where(total == 0, wide.dtype.type(1), total))
    return as_narrow(out, x)


# out = x - L(x), and dL/dx = softmax(x) = exp(out); so dx = g - exp(out) Σ g.
log_softmax.gradient(x=lambda g, out, axis: g - ops.exp(out) * g.sum(axis=axis, keepdims=True))
