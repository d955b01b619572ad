"""Losses of a difference d = input - target: squared, absolute, and what joins the two (Huber 1964).

Each is a composition, so its gradient is that of its steps. The kinked ones have the subgradient 0 at d = 0.
"""

from __future__ import annotations

from typing import Any

from minigrad import ops
from minigrad.arguments import in_precision, public
from minigrad.functional.targets import check_reduction, matching, reduce_losses


@in_precision("float32")
@public
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """The squared error ``d²``.

    Args:
        input: any shape.
        target: of the same shape; a tensor, an array or lists.
        reduction: ``"mean"`` over all elements, ``"sum"``, or ``"none"``: one loss an element.

    Raises:
        ValueError: shapes that differ (they would broadcast silently), an unknown reduction.
    """
    check_reduction(reduction, "mse_loss")
    input, target = matching(input, target, "mse_loss")
    difference = input - target
    return reduce_losses(difference * difference, reduction)


@in_precision("float32")
@public
def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """The absolute error ``|d|``. `input`, `target`, `reduction` and errors as for `mse_loss`."""
    check_reduction(reduction, "l1_loss")
    input, target = matching(input, target, "l1_loss")
    return reduce_losses(ops.absolute(input - target), reduction)


@in_precision("float32")
@public
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    """``d²/2`` where ``|d| ≤ δ``, and from there straight on with slope δ: ``δ(|d| - δ/2)`` (Huber 1964).

    Args:
        input, target, reduction: as for `mse_loss`.
        delta: δ, positive.

    Raises:
        ValueError: as `mse_loss`, and for a δ that is not positive.
    """
    check_reduction(reduction, "huber_loss")
    if not delta > 0:
        raise ValueError(f"huber_loss: delta must be positive, got {delta}")
    input, target = matching(input, target, "huber_loss")
    difference = input - target
    # With a = d kept within ±δ, a (d - a/2) is both pieces in one, and no square overflows where it is not wanted.
    kept = ops.clip(difference, -float(delta), float(delta))
    return reduce_losses(kept * (difference - kept * 0.5), reduction)


@in_precision("float32")
@public
def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """``d²/2β`` where ``|d| < β``, ``|d| - β/2`` elsewhere: the Huber loss divided by its slope; `l1_loss` if β is 0.

    Girshick, "Fast R-CNN", 2015, equation 3, has β = 1.

    Args:
        input, target, reduction: as for `mse_loss`.
        beta: β, not negative.

    Raises:
        ValueError: as `mse_loss`, and for a negative β.
    """
    check_reduction(reduction, "smooth_l1_loss")
    if not beta >= 0:
        raise ValueError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    input, target = matching(input, target, "smooth_l1_loss")
    difference = input - target
    if beta == 0:
        return reduce_losses(ops.absolute(difference), reduction)
    kept = ops.clip(difference, -float(beta), float(beta))  # as in `huber_loss`
    return reduce_losses(kept * (1 / beta) * (difference - kept * 0.5), reduction)
