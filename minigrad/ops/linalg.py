"""The matrix product, with every pair of ranks."""

from __future__ import annotations

from minigrad.device.sums import sum_to
from minigrad.engine.primitive import primitive
from minigrad.ops.shape import rows


@primitive(precision="float16", fresh=True)
def matmul(x, y):
    """The matrix product of x and y by NumPy's rules: a 1-D operand is a row on the left, a column on the right.

    ``(…, n, k) @ (…, k, m) → (…, n, m)``; the leading axes broadcast.
    """
    if x.shape[-1:] != y.shape[-2:][:1]:
        raise ValueError(f"matmul: needs x.shape[-1] == y.shape[{-2 if y.ndim > 1 else 0}], got {x.shape} and "
                         f"{y.shape}")
    return x @ y


# forward: Z = X Y.  With G = dZ:  dX = G Yᵀ,  dY = Xᵀ G; broadcast leading axes are summed, by the product of all
# rows where one matrix Y multiplies them. Vectors are matrices of one row or column here.
def matmul_gradient_x(g, y, x_shape):
    if len(y.shape) == 1:
        g, y = g[..., None], y[:, None]
    return sum_to((g[..., None, :] if len(x_shape) == 1 else g) @ y.mT, x_shape)


def matmul_gradient_y(g, x, y_shape):
    if len(y_shape) == 1:
        g = g[..., None]
    if len(x.shape) == 1:
        g, x = g[..., None, :], x[None]
    out = rows(x).mT @ rows(g) if len(y_shape) == 2 else x.mT @ g
    return sum_to(out[..., 0] if len(y_shape) == 1 else out, y_shape)


matmul.gradient(x=matmul_gradient_x, y=matmul_gradient_y)
