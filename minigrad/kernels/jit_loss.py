"""Cross-entropy: each row of the logits is read once, and no second array of their size is made in the forward."""

from __future__ import annotations

import numpy as np

from minigrad.functional.loss import row_losses as row_losses_in_numpy
from minigrad.kernels.jit_kernel import Booleans, Ids, Matrix, Number, OutMatrix, OutVector, Vector, kernel
from minigrad.kernels.jit_math import exp, total_and_shift
from minigrad.kernels.jit_twin import dense, is_dense, twin_of
from minigrad.primitive import Saved


def suits(logits, target, counted, label_smoothing):
    """Whether the rows lie one after the other."""
    return is_dense(logits) and logits.ndim == 2


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
        log = np.log(total)
        loss = log - (1 - smoothing) * (row[target[i]] - shift)
        if smoothing:
            uniform = logits.dtype.type(0)
            for j in range(row.size):
                uniform += row[j] - shift
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
            grad[i, j] = g[i] * (exp(logits[i, j] - log_total[i]) - uniform)
        grad[i, target[i]] -= g[i] * (1 - smoothing)


@twin_of(row_losses_in_numpy, suits)
def row_losses(logits, target, counted, label_smoothing=0.0):
    losses, log_total = (np.empty(logits.shape[0], logits.dtype) for _ in range(2))
    losses_of_rows(logits, target.astype(np.int64, copy=False), counted, label_smoothing, losses, log_total)
    return losses, Saved(log_total=log_total)


@row_losses.joint_gradient("logits")
def row_losses_gradient(g, logits, target, counted, label_smoothing, saved):
    grad = np.empty_like(logits)
    losses_of_rows_gradient(dense(g), logits, target.astype(np.int64, copy=False), counted, label_smoothing,
                            saved.log_total, grad)
    return (grad,)
