"""The matrix product, with every pair of ranks."""

from __future__ import annotations

from typing import Any

from minigrad.engine.operands import sum_to
from minigrad.engine.primitive import primitive
from minigrad.ops.shape import require_arrays, reshape, rows


@primitive(precision="float16", fresh=True)
def batched_matmul(x, y):
    """``(…, n, k) @ (…, k, m) → (…, n, m)``; the leading axes broadcast."""
    return x @ y


# forward: Z = X Y.  With G = dZ:  dX = G Yᵀ,  dY = Xᵀ G; broadcast leading axes are summed, by the product of all rows
# where one matrix Y multiplies them.
batched_matmul.gradient(x=lambda g, y, x_shape: sum_to(g @ y.mT, x_shape),
                        y=lambda g, x, y_shape: (rows(x).mT @ rows(g) if len(y_shape) == 2 else
                                                 sum_to(x.mT @ g, y_shape)))
batched_matmul.name = "matmul"  # what users call it


def matmul(x: Any, y: Any) -> Any:
    """The matrix product of x and y by NumPy's rules: a 1-D operand is a row on the left, a column on the right.

    Raises ValueError for 0-d operands, and for shapes that do not fit.
    """
    require_arrays("matmul", x, y)
    shapes = f"got {tuple(x.shape)} and {tuple(y.shape)}"
    if not len(x.shape) or not len(y.shape):
        raise ValueError(f"matmul: the operands need at least one dimension, {shapes}; use * for scalars")
    if x.shape[-1] != y.shape[-2 if len(y.shape) > 1 else 0]:
        raise ValueError(f"matmul: x.shape[-1] == y.shape[{-2 if len(y.shape) > 1 else 0}], {shapes}")
    if not all(n == m or n == 1 or m == 1 for n, m in zip(x.shape[-3::-1], y.shape[-3::-1], strict=False)):
        raise ValueError(f"matmul: x.shape[:-2] and y.shape[:-2] broadcast, {shapes}")
    if len(x.shape) >= 2 and len(y.shape) >= 2:
        return batched_matmul(x, y)
    lifted_x = reshape(x, (1, *x.shape)) if len(x.shape) == 1 else x
    lifted_y = reshape(y, (*y.shape, 1)) if len(y.shape) == 1 else y
    out = batched_matmul(lifted_x, lifted_y)
    n, m = out.shape[-2:-1] if len(x.shape) > 1 else (), out.shape[-1:] if len(y.shape) > 1 else ()
    return reshape(out, (*out.shape[:-2], *n, *m))
