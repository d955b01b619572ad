"""Products made of the matrix product and of broadcasting: they have no gradient rules of their own."""

from __future__ import annotations

import math
from typing import Any

from minigrad.arguments import public
from minigrad.ops.arithmetic import mul
from minigrad.ops.linalg import matmul
from minigrad.ops.more.shape import moveaxis
from minigrad.ops.shape import require_arrays, reshape


@public
def outer(x: Any, y: Any) -> Any:
    """``out[i, j] = x[i] · y[j]``, of the flattened operands."""
    require_arrays("outer", x, y)
    return mul(reshape(x, (math.prod(x.shape), 1)), reshape(y, (1, math.prod(y.shape))))


@public
def dot(x: Any, y: Any) -> Any:
    """NumPy's dot: of vectors the inner, of matrices the matrix product, with a number (also one of Python's) x · y.

    Of more dimensions it is the sum over the last axis of x and the last but one of y, ``out[i…, j…, m] =
    Σ_k x[i…, k] · y[j…, k, m]``. `matmul`, which goes by batches, is what networks need.
    """
    arrays = [z for z in (x, y) if not isinstance(z, (bool, int, float))]
    require_arrays("dot", *arrays)
    if len(arrays) < 2 or not len(x.shape) or not len(y.shape):
        return mul(x, y)
    if len(x.shape) <= 2 and len(y.shape) <= 2:
        return matmul(x, y)
    columns = moveaxis(y, -2, 0) if len(y.shape) > 1 else y
    if columns.shape[0] != x.shape[-1]:
        raise ValueError(f"dot: the last axis of x and the last but one of y must have one length, got shapes "
                         f"{tuple(x.shape)} and {tuple(y.shape)}")
    out = matmul(reshape(x, (math.prod(x.shape[:-1]), x.shape[-1])),
                 reshape(columns, (x.shape[-1], math.prod(columns.shape[1:]))))
    return reshape(out, (*x.shape[:-1], *columns.shape[1:]))
