"""The last layer of a model and its loss as one operation: the cross-entropy of ``H Wᵀ + b``.

It computes what `linear` and `cross_entropy` do, without the rows that do not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.arguments import number, public
from minigrad.device import xp
from minigrad.device.sums import sum_over
from minigrad.engine.node import Saved
from minigrad.engine.primitive import primitive
from minigrad.functional.linear import check_shapes, linear
from minigrad.functional.loss import check_reduction, class_ids, cross_entropy, row_losses, row_losses_gradient
from minigrad.functional.more.rows import gather_rows
from minigrad.ops.shape import rows
from minigrad.tensor import as_tensor


def every_row(target: Any) -> Any:
    """Booleans that count all rows."""
    return xp(target).ones(target.shape, dtype=bool)


@primitive(floating=True, composite=True, precision="float32", fresh=True)
def linear_losses(input, weight, bias, target, label_smoothing):
    """The sum of the losses of all rows of ``H Wᵀ + b``, as in `row_losses`.

    Args:
        input: H, (N, D)
        weight, bias: W (C, D), and b (C,) or None
        target: N ids in [0, C), a host array.
        label_smoothing: ε
    """
    logits = linear(input, weight, bias)  # x: (N, C)
    losses, saved = row_losses.forward(logits, target, every_row(target), label_smoothing)
    return losses.sum(), Saved(logits=logits, top=saved.top, log_total=saved.log_total)


@linear_losses.joint_gradient("input", "weight", "bias")
def linear_losses_gradient(g, input, weight, target, label_smoothing, saved):
    # forward: loss = Σ rows of L(x) - Σ q x    so here: dx = g (p - q), each row as in `row_losses`
    g_of_rows = xp(saved.logits).broadcast_to(g, target.shape)
    (grad_logits,) = row_losses_gradient(g_of_rows, saved.logits, target, every_row(target), label_smoothing, saved)
    # forward: x = H Wᵀ + b                     so here: dH = dx W,  dW = dxᵀ H,  db = Σ dx
    return grad_logits @ weight, grad_logits.mT @ input, sum_over(grad_logits, 0)


@public
def linear_cross_entropy(input: Any, weight: Any, target: Any, bias: Any = None, ignore_index: int = -100,
                         reduction: str = "mean", label_smoothing: float = 0.0) -> Any:
    """``cross_entropy(linear(input, weight, bias), target)``, in less memory and time.

    On the host, rows that do not count are left out before the product. On a GPU, where counting them would have to
    wait for it, and of float16, whose sums of losses soon reach its limit, this is the composition. So it is under
    `minigrad.autocast`: logits in float16, their loss in float32.

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
    number(label_smoothing, "label_smoothing", "linear_cross_entropy", 0, 1)
    input = as_tensor(input)
    if input.device != "cpu" or input.dtype == np.float16:
        logits = linear(input, weight, bias)
        return cross_entropy(logits, target, ignore_index, reduction, label_smoothing)
    ids, counted = class_ids(target, (*input.shape[:-1], len(weight)), "cpu", ignore_index, "linear_cross_entropy")
    hidden = rows(input)
    if not counted.all():
        places = np.flatnonzero(counted)
        hidden, ids = gather_rows(hidden, places), ids[places]
    total = linear_losses(hidden, weight, bias, ids, label_smoothing)
    return total if reduction == "sum" else total / max(1, len(ids))
