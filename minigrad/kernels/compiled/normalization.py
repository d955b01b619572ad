"""layer_norm: each row is read from memory once, both ways."""

from __future__ import annotations

import numpy as np

from minigrad.engine.node import Saved
from minigrad.functional.normalization import check_shapes
from minigrad.functional.normalization import layer_norm as layer_norm_in_numpy
from minigrad.kernels.compiled.kernel import Matrix, Number, OutMatrix, OutVector, Vector, kernel
from minigrad.kernels.compiled.operands import are_dense, compiled_body, dense
from minigrad.ops.shape import rows

BLOCK = 256  # rows, whose share of a gradient of the parameters is summed in their dtype


def suits(input, weight, bias, eps):
    """It takes float32 and float64 rows in host memory, C-contiguous and not empty, with a weight and a bias."""
    return are_dense(input, weight, bias) and input.ndim > 0


@kernel
def layer_norm_rows(x: Matrix, weight: Vector, bias: Vector, eps: Number, out: OutMatrix, mean: OutVector,
                    rstd: OutVector):
    count = x.dtype.type(x.shape[1])
    for i in range(x.shape[0]):
        total = x.dtype.type(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        center = total / count
        squares = x.dtype.type(0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - center) * (x[i, j] - center)
        scale = 1 / np.sqrt(squares / count + eps)
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - center) * scale * weight[j] + bias[j]
        mean[i], rstd[i] = center, scale


@kernel
def layer_norm_rows_gradient(g: Matrix, x: Matrix, weight: Vector, mean: Vector, rstd: Vector, grad: OutMatrix,
                             grad_weight: OutMatrix, grad_bias: OutMatrix):
    # forward: x̂ = (x - mean) · rstd, out = x̂ · weight + bias      so here, with dx̂ = g · weight:
    # dx = rstd · (dx̂ - mean(dx̂) - x̂ mean(dx̂ · x̂)),  dweight = Σ g x̂,  dbias = Σ g, a row for each BLOCK of rows
    count = x.dtype.type(x.shape[1])
    for i in range(x.shape[0]):
        center, scale = mean[i], rstd[i]
        total = total_along = x.dtype.type(0)
        for j in range(x.shape[1]):
            h = g[i, j] * weight[j]
            total += h
            total_along += h * ((x[i, j] - center) * scale)
        shift, slope = total / count, total_along / count
        for j in range(x.shape[1]):
            normalized = (x[i, j] - center) * scale
            grad[i, j] = scale * (g[i, j] * weight[j] - shift - normalized * slope)
        for j in range(x.shape[1]):
            grad_weight[i // BLOCK, j] += g[i, j] * ((x[i, j] - center) * scale)
        for j in range(x.shape[1]):
            grad_bias[i // BLOCK, j] += g[i, j]


@compiled_body(layer_norm_in_numpy, suits)
def layer_norm(input, weight=None, bias=None, eps=1e-5):
    check_shapes("layer_norm", input, weight, bias)
    out, x = np.empty_like(input), rows(input)
    mean, rstd = (np.empty(x.shape[0], x.dtype) for _ in range(2))
    layer_norm_rows(x, weight, bias, eps, rows(out), mean, rstd)
    return out, Saved(mean=mean, rstd=rstd)


@layer_norm.joint_gradient("input", "weight", "bias")
def layer_norm_gradient(g, input, weight, saved, needs):
    grad_input, x = np.empty_like(input), rows(input)
    grad_weight, grad_bias = (np.zeros((len(x) // BLOCK + 1, weight.size), weight.dtype) for _ in range(2))
    layer_norm_rows_gradient(rows(dense(g)), x, weight, saved.mean, saved.rstd, rows(grad_input), grad_weight,
                             grad_bias)
    return grad_input, *(sums.sum(axis=0, dtype=np.float64).astype(x.dtype) for sums in (grad_weight, grad_bias))
