"""Some rows of a matrix, as a matrix of their own, and back: how padding is left out of work that is done row by row.

The two operations are each other's transpose, so each is the other's gradient.
"""

from __future__ import annotations

import numpy as np

from minigrad.device import xp
from minigrad.engine.primitive import primitive


@primitive(fresh=True)
def gather_rows(x, rows):
    """``x[rows]``: (M, …) → (N, …), for N different rows, an integer array."""
    return xp(x).take(x, rows.astype(np.intp, copy=False), axis=0)  # on 32 bits, take refuses int64


@primitive(fresh=True)
def scatter_rows(x, rows, count):
    """The rows of x at the places `rows` among `count`, the others 0: (N, …) → (count, …), for N different places."""
    out = xp(x).zeros_like(x, shape=(count, *x.shape[1:]))
    out[rows] = x
    return out


gather_rows.gradient(x=lambda g, rows, x_shape: scatter_rows(g, rows, x_shape[0]))
scatter_rows.gradient(x=lambda g, rows: gather_rows(g, rows))
