"""Cross-entropy with targets that are probabilities of the classes."""

from __future__ import annotations

from typing import Any

from minigrad import ops
from minigrad.functional.softmax import log_softmax


def soft_cross_entropy(logits: Any, target: Any, weight: Any, reduction: str, label_smoothing: float) -> Any:
    """``-Σⱼ qⱼ wⱼ log pⱼ`` with ``q = (1 - ε)·target + ε/C``; a class of probability 0 adds 0, whatever its logit.

    The mean is over all rows, whatever the weights (C,), which may be None.
    """
    log_probabilities = log_softmax(logits, axis=-1)
    if label_smoothing:
        target = (1 - label_smoothing) * target + label_smoothing / logits.shape[-1]
    weighted = target if weight is None else target * weight
    impossible = ops.logical_and(ops.equal(weighted, 0), ops.isinf(log_probabilities))
    losses = -(weighted * ops.where(impossible, 0.0, log_probabilities)).sum(axis=-1)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" or not losses.size else losses.mean()
