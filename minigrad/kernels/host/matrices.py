"""The matrix product with one right-hand matrix: one 2-D product over all rows, ``(B·T, D) @ (D, E)``.

BLAS takes one product of many rows in less time than many products of few. On a GPU, CuPy copies the transposed
operands of a batched product, and need not copy those of a 2-D one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.kernels.bodies import add_body
from minigrad.ops.linalg import matmul
from minigrad.ops.shape import rows


def matmul_of_rows(x: Any, y: Any) -> Any:
    """``x @ y``, of arrays (…, n, k) and (k, m) on any device."""
    return (rows(x) @ y).reshape(*x.shape[:-1], y.shape[-1])


# forward: Z = X Y.  With G = dZ:  dX = G Yᵀ,  dY = Xᵀ G, and both are 2-D products again.
def matmul_gradient_x(g, y):
    return matmul_of_rows(g, y.mT)


def matmul_gradient_y(g, x):
    return rows(x).mT @ rows(g)


def has_one_right_hand_matrix(x: Any, y: Any) -> bool:
    """Whether one matrix multiplies all the rows of several; on the host those that BLAS can multiply."""
    matrices = getattr(y, "ndim", 0) == 2 and getattr(x, "ndim", 0) > 2
    return matrices and (type(x) is not np.ndarray or x.dtype.char in "fd")


add_body(matmul, has_one_right_hand_matrix, matmul_of_rows, x=matmul_gradient_x, y=matmul_gradient_y)
