"""Sums over the rows and over the columns of a matrix in host memory, of float32 or float64.

NumPy adds up a short last axis one row at a time, and calls its inner loop once for each. A BLAS sees the same sum as a
product with a vector of ones, and takes an eighth to a quarter of the time.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from minigrad.device.sums import sum_over
from minigrad.ops.shape import rows

MANY = 4096  # rows, from which on a product with ones loses digits of float32
LONG = 64  # elements of a row, from which on a call of the BLAS for each row beats einsum


@functools.lru_cache(maxsize=16)
def short_ones(size: int, kind: str) -> Any:
    """A vector of ones, made once: on small arrays, making it costs as much as the product."""
    vector = np.ones(size, kind)
    vector.flags.writeable = False
    return vector


def ones(size: int, kind: str) -> Any:
    """A vector of ones, of the dtype with this character."""
    return short_ones(size, kind) if size <= 4096 else np.ones(size, kind)


def row_sums(x: Any, weight: Any = None) -> Any:
    """``Σ_d x[…, d] weight[d]``, the last axis kept: (…, D) → (…, 1). No weight counts as ones."""
    return (rows(x) @ (ones(x.shape[-1], x.dtype.char) if weight is None else weight)).reshape(*x.shape[:-1], 1)


def row_means(x: Any, weight: Any = None) -> Any:
    """``row_sums(x, weight) / D``."""
    return row_sums(x, weight) / x.shape[-1]


def column_sums(x: Any) -> Any:
    """``Σ_n x[n, d]``: (N, D) → (D,)."""
    return ones(len(x), x.dtype.char) @ x if len(x) <= MANY else sum_over(x, 0)


def row_dot(x: Any, y: Any) -> Any:
    """``Σ_d x[…, d] y[…, d]``, with the last axis kept: (…, 1). No product array is made."""
    if x.shape[-1] >= LONG:
        return np.vecdot(x, y)[..., None]
    return np.einsum("...d,...d->...", x, y)[..., None]
