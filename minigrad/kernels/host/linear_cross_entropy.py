"""The last layer of a model and its loss in one: logits whose gradient is never an array of its own.

With many classes the logits are the largest array of a training step, and their gradient would be a second one. But

    x = H Wᵀ + b            p = softmax(x)            dx = g (p - q)            dH = dx W,   dW = dxᵀ H,   db = Σ dx

can do without: p is E / Z, row by row, with E = eˣ and Z its row sums, and division by a row's sum may as well be done
after the product with W, on D features in place of C classes. The rest, q, has one large entry a row. So E, in the
memory of x, is all that is kept and all that is multiplied.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.engine.node import Saved
from minigrad.functional.linear import check_shapes
from minigrad.functional.more.linear_cross_entropy import linear_losses as linear_losses_definition
from minigrad.kernels.bodies import faster_body, on_host
from minigrad.kernels.host.indexing import add_at
from minigrad.kernels.host.softmax import exponentials
from minigrad.kernels.host.sums import column_sums


def suits(input, weight, bias, target, label_smoothing):
    """It takes at least one row and one class, of float32 or float64 arrays in host memory."""
    return on_host(input, weight, bias, target) and len(input) > 0 and len(weight) > 0


@faster_body(linear_losses_definition, suits, fresh=True)
def linear_losses(input, weight, bias, target, label_smoothing):
    check_shapes(input, weight, bias)

    def logits() -> Any:
        product = input @ weight.mT
        return product if bias is None else product + bias

    places = np.arange(len(input)), target
    x = logits()
    of_target = x[places]
    numerators, total, shift = exponentials(x, None, logits)
    numerator, log_total = numerators[places], (np.log(total) + shift)[:, 0]
    # Of a sure model p = E/Z is near 1, and -log p has digits that the difference of two large logits has lost.
    p, smallest = numerator / total[:, 0], np.finfo(x.dtype).tiny
    has_digits = (numerator > smallest) & (p > smallest)
    losses = np.where(has_digits, -np.log(np.maximum(p, smallest)), log_total - of_target)
    if label_smoothing:
        mean = input @ weight.mean(axis=0)  # of the logits of a row, without a look at them
        uniform = log_total - (mean if bias is None else mean + bias.mean())
        losses = (1 - label_smoothing) * losses + label_smoothing * uniform
    return losses.sum(), Saved(numerators=numerators, total=total)


@linear_losses.joint_gradient("input", "weight", "bias")
def linear_losses_gradient(g, input, weight, bias, target, label_smoothing, saved, needs):
    # forward: loss = Σ L(x) - Σ q x            so here: dx = g (E/Z - q), of which g/Z is the factor of a row,
    # (1 - ε) g is taken off at the target, and ε g / C everywhere.
    numerators, factor = saved.numerators, g / saved.total
    off, everywhere = (1 - label_smoothing) * g, label_smoothing * g / len(weight)
    grad_input = grad_weight = grad_bias = None
    # forward: x = H Wᵀ + b                     so here: dH = dx W,  dW = dxᵀ H,  db = Σ dx
    if needs.input:
        grad_input = numerators @ weight
        grad_input *= factor
        grad_input -= off * weight[target]
        grad_input -= everywhere * column_sums(weight)
    if needs.weight:
        grad_weight = numerators.mT @ (input * factor)
        add_at(grad_weight, target, -off * input)
        grad_weight -= everywhere * column_sums(input)
    if needs.bias:
        grad_bias = numerators.mT @ factor[:, 0]
        add_at(grad_bias, target, -off)
        grad_bias -= everywhere * len(input)
    return grad_input, grad_weight, grad_bias
