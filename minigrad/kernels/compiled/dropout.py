"""Dropout with a mask. Drawing the mask stays NumPy's: the generator is what takes the time, compiled or not."""

from __future__ import annotations

import numpy as np

from minigrad.functional.dropout import dropout_with_mask as dropout_in_numpy
from minigrad.kernels.compiled.kernel import Booleans, Number, OutVector, Vector, kernel
from minigrad.kernels.compiled.operands import are_dense, compiled_body, dense, is_mask, rule_of


def suits(input, mask, p):
    """It takes float32 and float64 arrays in host memory, C-contiguous, not empty; a mask of the shape; p in [0, 1)."""
    return are_dense(input) and is_mask(mask, input.shape) and type(p) is float and 0 <= p < 1


@kernel
def keep_and_scale(x: Vector, mask: Booleans, factor: Number, out: OutVector):
    zero = x.dtype.type(0)
    for i in range(x.size):
        out[i] = x[i] * (factor if mask[i] else zero)


@compiled_body(dropout_in_numpy, suits)
def dropout_with_mask(input, mask, p):
    out = np.empty_like(input)
    keep_and_scale(input.reshape(-1), mask.reshape(-1), 1 / (1 - p), out.reshape(-1))
    return out


@rule_of(dropout_with_mask, "input")
def dropout_gradient(g, mask, p):
    return dropout_with_mask.forward(dense(g), mask, p)
