"""linear by cuBLAS, and the gradient of its bias: CuPy adds up long columns slowly."""

from __future__ import annotations

from typing import Any

from minigrad.device import xp
from minigrad.functional.linear import check_shapes
from minigrad.functional.linear import linear as linear_definition
from minigrad.kernels.cuda.launching import launch
from minigrad.kernels.cuda.products import product
from minigrad.ops.shape import rows


@linear_definition.faster("cupy")
def linear(input, weight, bias=None):
    check_shapes(input, weight, bias)
    out = product(rows(input), weight.T)
    if bias is not None:
        out += bias
    return out.reshape((*input.shape[:-1], weight.shape[0]))


linear.gradient(input=lambda g, weight: product(rows(g), weight).reshape((*g.shape[:-1], weight.shape[1])),
                weight=lambda g, input: product(rows(g).T, rows(input)),
                bias=lambda g: column_sums(rows(g)))


def column_sums(x: Any) -> Any:
    """``x.sum(0)`` of a matrix."""
    namespace, (length, width) = xp(x), x.shape
    parts = max(1, min(64, length // 512))
    sums = namespace.empty((parts, width), x.dtype)
    launch("matrices.cu", "column_sums", x, (-(-width // 32), parts), (32, 16), namespace.ascontiguousarray(x), sums,
           length, width)
    return sums[0] if parts == 1 else column_sums(sums)
