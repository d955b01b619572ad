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

from minigrad.arguments import public
from minigrad.device import xp
from minigrad.engine.primitive import Saved, primitive
from minigrad.functional.linear import check_shapes, linear
from minigrad.functional.loss import cross_entropy, row_losses
from minigrad.functional.rows import gather_rows
from minigrad.functional.softmax import exponentials
from minigrad.functional.sums import column_sums
from minigrad.functional.targets import check_reduction, class_ids
from minigrad.kernels.host.indexing import add_at
from minigrad.tensor import as_tensor


def linear_losses_by_steps(input: Any, weight: Any, bias: Any, target: Any, label_smoothing: float) -> Any:
    """linear_losses as a composition: the logits, the loss of each row, their sum."""
    everywhere = xp(target).ones(target.shape, dtype=bool)
    return row_losses(linear(input, weight, bias), target, everywhere, label_smoothing).sum()


@primitive(floating=True, composition=linear_losses_by_steps, precision="mixed")
def linear_losses(input, weight, bias, target, label_smoothing):
    """The sum of the losses of all rows, with q = (1 - ε)·onehot(target) + ε/C as in `row_losses`; keeps E and Z.

    Args:
        input: (N, D)
        weight, bias: (C, D), and (C,) or None
        target: N ids in [0, C), a host array.
        label_smoothing: ε
    """
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


@public
def linear_cross_entropy(input: Any, weight: Any, target: Any, bias: Any = None, ignore_index: int = -100,
                         reduction: str = "mean", label_smoothing: float = 0.0) -> Any:
    """``cross_entropy(linear(input, weight, bias), target)``, in less memory and time.

    On the host, rows that do not count are left out before the product. On a GPU, where counting them would have to
    wait for it, and of float16, whose sums of losses soon reach its limit, this is the composition. So it is under
    `minigrad.precision.autocast`: logits in float16, their loss in float32.

    Args:
        input: (…, D)
        weight, bias: (C, D), and (C,) or None
        target, ignore_index, label_smoothing: as for `cross_entropy`.
        reduction: ``"mean"`` over the rows that count, or their ``"sum"``.

    Raises:
        ValueError, TypeError, IndexError: as `cross_entropy` and `linear`.
    """
    check_shapes(input, weight, bias)
    check_reduction(reduction, "linear_cross_entropy", ("mean", "sum"))
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"linear_cross_entropy: label_smoothing must be in [0, 1], got {label_smoothing}")
    input = as_tensor(input)
    if input.device != "cpu" or input.dtype == np.float16:
        logits = linear(input, weight, bias)
        return cross_entropy(logits, target, None, ignore_index, reduction, label_smoothing)
    ids, counted = class_ids(target, (*input.shape[:-1], len(weight)), "cpu", ignore_index, "linear_cross_entropy")
    hidden = input.reshape(-1, input.shape[-1])
    if not counted.all():
        places = np.flatnonzero(counted)
        hidden, ids = gather_rows(hidden, places), ids[places]
    total = linear_losses(hidden, weight, bias, ids, label_smoothing)
    return total if reduction == "sum" else total / max(1, len(ids))
