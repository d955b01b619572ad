"""Cross-entropy: a row of logits is worked on while it is in the cache, and the forward makes no second array."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.engine.node import Saved
from minigrad.functional.linear import check_shapes
from minigrad.functional.loss import row_losses as row_losses_in_numpy
from minigrad.functional.more.linear_cross_entropy import linear_losses as linear_losses_in_numpy
from minigrad.kernels.compiled.kernel import Booleans, Ids, Matrix, Number, OutMatrix, OutVector, Vector, kernel
from minigrad.kernels.compiled.math import exp, greatest, minus, total_and_shift
from minigrad.kernels.compiled.operands import are_dense, compiled_body, dense, is_mask
from minigrad.kernels.host.linear_cross_entropy import linear_losses_gradient as linear_losses_gradient_in_numpy


def are_ids(target: Any, rows: int, classes: int) -> bool:
    """Whether there is a class for each row; kernels do not look, and would read what is elsewhere in memory."""
    return type(target) is np.ndarray and target.shape == (rows,) and target.min() >= 0 and target.max() < classes


def suits(logits, target, counted, label_smoothing):
    """It takes float32 and float64 logits in host memory, C-contiguous and not empty, and an id for each row."""
    return (are_dense(logits) and logits.ndim == 2 and are_ids(target, *logits.shape)
            and is_mask(counted, logits.shape[:1]))


@kernel
def losses_of_rows(logits: Matrix, target: Ids, counted: Booleans, smoothing: Number, losses: OutVector,
                   log_total: OutVector):
    # With L = log Σⱼ exp xⱼ and q = (1 - ε)·onehot(target) + ε/C:  loss = L - Σⱼ qⱼ xⱼ, all relative to the greatest x.
    for i in range(logits.shape[0]):
        if not counted[i]:
            losses[i] = log_total[i] = 0
            continue
        row = logits[i]
        total, shift = total_and_shift(row)
        log = np.log(logits.dtype.type(1) if total == 0 else total)  # 0 where all are -inf
        loss = log - (1 - smoothing) * minus(row[target[i]], shift)
        if smoothing:
            uniform = logits.dtype.type(0)
            for j in range(row.size):
                uniform += minus(row[j], shift)
            loss -= smoothing * (uniform / logits.dtype.type(row.size))
        losses[i], log_total[i] = loss, log + shift


@kernel
def losses_of_rows_gradient(g: Vector, logits: Matrix, target: Ids, counted: Booleans, smoothing: Number,
                            log_total: Vector, grad: OutMatrix):
    # forward: loss = L(x) - Σ q x, counted rows only      so here: dx = g · (softmax(x) - q), 0 for the other rows
    uniform = smoothing / g.dtype.type(logits.shape[1])
    for i in range(logits.shape[0]):
        if not counted[i]:
            grad[i] = 0
            continue
        for j in range(logits.shape[1]):
            grad[i, j] = g[i] * (exp(minus(logits[i, j], log_total[i])) - uniform)
        grad[i, target[i]] -= g[i] * (1 - smoothing)


@compiled_body(row_losses_in_numpy, suits)
def row_losses(logits, target, counted, label_smoothing=0.0):
    losses, log_total = (np.empty(logits.shape[0], logits.dtype) for _ in range(2))
    losses_of_rows(logits, np.ascontiguousarray(target, np.int64), counted, label_smoothing, losses, log_total)
    return losses, Saved(log_total=log_total)


@row_losses.joint_gradient("logits")
def row_losses_gradient(g, logits, target, counted, label_smoothing, saved):
    grad = np.empty_like(logits)
    losses_of_rows_gradient(dense(g), logits, np.ascontiguousarray(target, np.int64), counted, label_smoothing,
                            saved.log_total, grad)
    return (grad,)


def suits_with_weight(input, weight, bias, target, label_smoothing):
    """It takes float32 and float64 arrays in host memory, C-contiguous and not empty, and an id for each row."""
    floating = (input, weight) if bias is None else (input, weight, bias)
    return are_dense(*floating) and input.ndim == weight.ndim == 2 and are_ids(
        target, len(input), len(weight))


@kernel
def losses_of_logits(x: OutMatrix, bias: Vector, target: Ids, smoothing: Number, losses: OutVector, total: OutVector):
    # As losses_of_rows; x becomes E = e^(x - max x), row by row, and `total` Z = Σ E.
    for i in range(x.shape[0]):
        row = x[i]
        if bias.size:
            for j in range(row.size):
                row[j] += bias[j]
        top = greatest(row)
        shift = x.dtype.type(0) if top == -np.inf else top
        of_target = minus(row[target[i]], shift)
        sum_of_logits = sum_of_exponentials = x.dtype.type(0)
        for j in range(row.size):
            shifted = minus(row[j], shift)
            exponential = exp(shifted)
            row[j] = exponential
            sum_of_logits += shifted
            sum_of_exponentials += exponential
        total[i] = x.dtype.type(1) if sum_of_exponentials == 0 else sum_of_exponentials
        losses[i] = np.log(total[i]) - (1 - smoothing) * of_target
        if smoothing:
            losses[i] -= smoothing * (sum_of_logits / x.dtype.type(row.size))


@compiled_body(linear_losses_in_numpy, suits_with_weight)
def linear_losses(input, weight, bias, target, label_smoothing):
    check_shapes(input, weight, bias)
    x = input @ weight.mT
    losses, total = (np.empty(len(x), x.dtype) for _ in range(2))
    bias = np.empty(0, x.dtype) if bias is None else bias
    losses_of_logits(x, bias, np.ascontiguousarray(target, np.int64), label_smoothing, losses, total)
    return losses.sum(), Saved(numerators=x, total=total[:, None])


linear_losses.joint_gradient("input", "weight", "bias")(linear_losses_gradient_in_numpy)  # matrix products alone
