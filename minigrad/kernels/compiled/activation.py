"""ReLU, and GELU by the tanh approximation: one pass each way."""

from __future__ import annotations

import math

import numpy as np

from minigrad.functional.gelu import gelu_tanh as gelu_tanh_in_numpy
from minigrad.kernels.compiled.kernel import OutVector, Vector, helper, kernel
from minigrad.kernels.compiled.math import exp
from minigrad.kernels.compiled.operands import are_dense, compiled_body, dense, rule_of
from minigrad.ops.selection import relu as relu_in_numpy

SLOPE, CUBIC = math.sqrt(2 / math.pi), 0.044715


def suits(x):
    """It takes float32 and float64 arrays in host memory, C-contiguous and not empty."""
    return are_dense(x)


@kernel
def relu_gradient_of_elements(g: Vector, out: Vector, grad: OutVector):
    for i in range(g.size):
        grad[i] = g[i] if out[i] != 0 else 0


@compiled_body(relu_in_numpy, suits)
def relu(x):
    return relu_in_numpy.forward(x)  # a single pass already


@rule_of(relu, "x")
def relu_gradient(g, out):
    grad = np.empty_like(out)
    relu_gradient_of_elements(dense(g).reshape(-1), out.reshape(-1), grad.reshape(-1))
    return grad


@helper
def half_of_one_plus_tanh(u):
    """``(1 + tanh u)/2 = 1/(1 + e^(-2u))``."""
    return 1 / (1 + exp(-2 * u))


@kernel
def gelu_tanh_of_elements(x: Vector, out: OutVector):
    slope, cubic = x.dtype.type(SLOPE), x.dtype.type(CUBIC)
    for i in range(x.size):
        out[i] = x[i] * half_of_one_plus_tanh(slope * (x[i] + cubic * x[i] * x[i] * x[i]))


@kernel
def gelu_tanh_gradient_of_elements(g: Vector, x: Vector, grad: OutVector):
    # With u = √(2/π)(x + c x³) and s = (1 + tanh u)/2:   d/dx x s = s + x · 2 s (1 - s) u'
    slope, cubic = x.dtype.type(SLOPE), x.dtype.type(CUBIC)
    for i in range(x.size):
        square = x[i] * x[i]
        s = half_of_one_plus_tanh(slope * (x[i] + cubic * square * x[i]))
        grad[i] = g[i] * (s + x[i] * (2 * s * (1 - s)) * (slope * (1 + 3 * cubic * square)))


@compiled_body(gelu_tanh_in_numpy, suits)
def gelu_tanh(x):
    out = np.empty_like(x)
    gelu_tanh_of_elements(x.reshape(-1), out.reshape(-1))
    return out


@rule_of(gelu_tanh, "x")
def gelu_tanh_gradient(g, x):
    grad = np.empty_like(x)
    gelu_tanh_gradient_of_elements(dense(g).reshape(-1), x.reshape(-1), grad.reshape(-1))
    return grad
