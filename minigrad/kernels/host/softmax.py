"""softmax and log_softmax in place, and the exponentials that attention and the losses share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.device.sums import sum_over
from minigrad.functional.softmax import log_softmax as log_softmax_definition
from minigrad.functional.softmax import softmax as softmax_definition
from minigrad.kernels.bodies import faster_body, on_host
from minigrad.kernels.host.sums import row_sums

SHORT = 512  # elements of a row, from which on NumPy finds its maximum in a fraction of the time that exp takes


@faster_body(softmax_definition, on_host, fresh=True)
def softmax(x, axis=-1):
    if not (x.size and x.ndim):
        return softmax_definition.forward(x, axis)
    if axis in (-1, x.ndim - 1):  # `least`: so that small probabilities do not vanish
        out, total, _ = exponentials(x.copy(), None, lambda: x, least=1e-2)
    else:
        out, total, _ = shifted_exponentials(x, axis)
    out /= total
    return out


@faster_body(log_softmax_definition, on_host, fresh=True)
def log_softmax(x, axis=-1):
    if not x.size:
        return log_softmax_definition.forward(x, axis)
    top = x.max(axis=axis, keepdims=True)
    out = x - np.where(top == -math.inf, x.dtype.type(0), top)  # first: both may be large and cancel
    total = sum_over(np.exp(out), axis, True)
    out -= np.log(np.where(total == 0, x.dtype.type(1), total))
    return out


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
    top = x.max(axis=axis, keepdims=True)
    top = np.where(top == -math.inf, x.dtype.type(0), top)
    out = np.subtract(x, top, out=out)
    np.exp(out, out=out)
    total = row_sums(out) if axis == -1 else sum_over(out, axis, True)
    return out, np.where(total == 0, x.dtype.type(1), total), top


def masked(x: Any, mask: Any) -> Any:
    """x where the mask is True, -inf elsewhere."""
    return np.where(mask, x, x.dtype.type(-math.inf))
