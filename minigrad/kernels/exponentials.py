"""The exponentials of a softmax along the last axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.kernels.sums import row_sums

SHORT = 512  # elements of a row, from which on NumPy finds its maximum in a fraction of the time that exp takes


def exponentials(scores: Callable[[], Any], mask: Any) -> tuple[Any, Any]:
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
            x += np.where(mask, x.dtype.type(0), x.dtype.type(-math.inf))
        with np.errstate(over="ignore", invalid="ignore"):
            total = row_sums(np.exp(x, out=x))
        if ((total > 1e-10) & (total < 1e15)).all():
            return x, total
        x = scores()
    if mask is not None:
        x = np.where(mask, x, x.dtype.type(-math.inf))
    x -= x.max(axis=-1, keepdims=True, initial=np.finfo(x.dtype).min)  # a number, also of -inf alone
    total = row_sums(np.exp(x, out=x))
    return x, total + (total == 0)
