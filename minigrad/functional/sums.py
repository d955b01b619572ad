"""Sums over the rows and over the columns of a matrix, as the fused operations need them: quick on the host.

NumPy adds up a short last axis one row at a time, and calls its inner loop once for each. A BLAS sees the same sum as a
product with a vector of ones, and takes an eighth to a quarter of the time.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from minigrad.device import xp
from minigrad.ops.linalg import rows
from minigrad.precision.half import total

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


def has_blas(x: Any) -> bool:
    """Whether products of `x` are BLAS's business: a host array of its two precisions."""
    return type(x) is np.ndarray and x.dtype.char in "fd"


def row_sums(x: Any, weight: Any = None) -> Any:
    """``Σ_d x[…, d] weight[d]``, the last axis kept: (…, D) → (…, 1). Of a raw array; no weight counts as ones."""
    if not has_blas(x):
        return (x if weight is None else x * weight).sum(axis=-1, keepdims=True)
    return (rows(x) @ (ones(x.shape[-1], x.dtype.char) if weight is None else weight)).reshape(*x.shape[:-1], 1)


def row_means(x: Any, weight: Any = None) -> Any:
    """``row_sums(x, weight) / D``; of float16 it is summed in float32."""
    if not has_blas(x):
        return (x if weight is None else x * weight).mean(axis=-1, keepdims=True)
    return row_sums(x, weight) / x.shape[-1]


def column_sums(x: Any) -> Any:
    """``Σ_n x[n, d]``: (N, D) → (D,). Of a raw array or a tensor."""
    return ones(len(x), x.dtype.char) @ x if has_blas(x) else total(x, 0)


def row_dot(x: Any, y: Any) -> Any:
    """``Σ_d x[…, d] y[…, d]``, with the last axis kept: (…, 1). No product array is made.

    Of float16 the sum is float32: it would soon be coarse, or infinite.
    """
    if has_blas(x) and has_blas(y) and x.shape[-1] >= LONG:
        return np.vecdot(x, y)[..., None]
    dtype = np.float32 if x.dtype == np.float16 else None
    return xp(x).einsum("...d,...d->...", x, y, dtype=dtype)[..., None]
