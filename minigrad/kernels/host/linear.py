"""linear as one 2-D matrix product over all rows, both ways, with the bias added in place.

On a GPU it is one product, too: of more dimensions CuPy copies the transposed operands.
"""

from __future__ import annotations

import numpy as np

from minigrad.device import is_array, is_host
from minigrad.functional.linear import check_shapes
from minigrad.functional.linear import linear as linear_definition
from minigrad.kernels.bodies import faster_body, on_host
from minigrad.kernels.host.sums import column_sums
from minigrad.ops.shape import rows


def suits(input, weight, bias):
    """It takes float32 and float64 arrays, in host memory or on a GPU."""
    return on_host(input, weight, bias) or (is_array(input) and not is_host(input) and input.dtype.char in "fd")


@faster_body(linear_definition, suits, fresh=True)
def linear(input, weight, bias=None):
    check_shapes(input, weight, bias)
    out = rows(input) @ weight.mT
    if bias is not None:
        out += bias
    return out.reshape(*input.shape[:-1], weight.shape[0])


linear.gradient(input=lambda g, weight: (rows(g) @ weight).reshape((*g.shape[:-1], weight.shape[1])),
                weight=lambda g, input: rows(g).mT @ rows(input),
                bias=lambda g: column_sums(rows(g)) if type(g) is np.ndarray else rows(g).sum(axis=0))
