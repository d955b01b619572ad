"""Sums over the last axis of an array.

NumPy adds up a short last axis one row at a time, and calls its inner loop once for each. As a product with a vector of
ones the BLAS takes an eighth to a quarter of the time.
"""

import numpy as np

from minigrad.ops.shape import rows


def row_sums(x):
    """``Σ_d x[…, d]``, the last axis kept: (…, D) → (…, 1)."""
    return (rows(x) @ np.ones(x.shape[-1], x.dtype)).reshape(*x.shape[:-1], 1)


def row_dot(x, y):
    """``Σ_d x[…, d] y[…, d]``, the last axis kept: (…, 1). No product array is made."""
    return np.vecdot(x, y)[..., None]
