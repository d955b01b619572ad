"""softmax and log_softmax along the last axis."""

from __future__ import annotations

import numpy as np

from minigrad.functional.softmax import log_softmax as log_softmax_in_numpy
from minigrad.functional.softmax import softmax as softmax_in_numpy
from minigrad.kernels.compiled.kernel import Matrix, OutMatrix, kernel
from minigrad.kernels.compiled.math import exp, greatest, minus, total_and_shift
from minigrad.kernels.compiled.operands import are_dense, compiled_body, dense, rule_of
from minigrad.ops.shape import rows


def suits(x, axis):
    """It takes float32 and float64 arrays in host memory, C-contiguous and not empty, along the last axis."""
    return are_dense(x) and axis in (-1, x.ndim - 1) and x.ndim > 0


@kernel
def softmax_rows(x: Matrix, out: OutMatrix):
    for i in range(x.shape[0]):
        top = greatest(x[i])
        shift = x.dtype.type(0) if top == -np.inf else top
        total = x.dtype.type(0)
        for j in range(x.shape[1]):
            exponential = exp(minus(x[i, j], shift))
            out[i, j] = exponential
            total += exponential
        factor = x.dtype.type(0) if total == 0 else 1 / total
        for j in range(x.shape[1]):
            out[i, j] *= factor


@kernel
def softmax_rows_gradient(g: Matrix, out: Matrix, grad: OutMatrix):
    for i in range(g.shape[0]):
        total = g.dtype.type(0)
        for j in range(g.shape[1]):
            total += g[i, j] * out[i, j]
        for j in range(g.shape[1]):
            grad[i, j] = out[i, j] * (g[i, j] - total)


@compiled_body(softmax_in_numpy, suits)
def softmax(x, axis=-1):
    out = np.empty_like(x)
    softmax_rows(rows(x), rows(out))
    return out


@rule_of(softmax, "x")
def softmax_gradient(g, out, axis):
    grad = np.empty_like(out)
    softmax_rows_gradient(rows(dense(g)), rows(out), rows(grad))
    return grad


@kernel
def log_softmax_rows(x: Matrix, out: OutMatrix):
    for i in range(x.shape[0]):
        total, shift = total_and_shift(x[i])
        log_total = np.log(x.dtype.type(1) if total == 0 else total)
        for j in range(x.shape[1]):
            out[i, j] = minus(minus(x[i, j], shift), log_total)


@kernel
def log_softmax_rows_gradient(g: Matrix, out: Matrix, grad: OutMatrix):
    for i in range(g.shape[0]):
        total = g.dtype.type(0)
        for j in range(g.shape[1]):
            total += g[i, j]
        for j in range(g.shape[1]):
            grad[i, j] = g[i, j] - exp(out[i, j]) * total


@compiled_body(log_softmax_in_numpy, suits)
def log_softmax(x, axis=-1):
    out = np.empty_like(x)
    log_softmax_rows(rows(x), rows(out))
    return out


@rule_of(log_softmax, "x")
def log_softmax_gradient(g, out, axis):
    grad = np.empty_like(out)
    log_softmax_rows_gradient(rows(dense(g)), rows(out), rows(grad))
    return grad
