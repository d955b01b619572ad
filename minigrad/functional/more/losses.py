"""Losses element by element: of a difference, and between probabilities.

The losses of a difference d = input - target are squared, absolute, or join the two (Huber 1964); the kinked ones have
the subgradient 0 at d = 0. The losses between probabilities are binary cross-entropy, of probabilities and of logits,
and the Kullback-Leibler divergence. Where a probability is 0 its logarithm is not finite: here ``0 · log 0 = 0``, the
limit, and the binary cross-entropy of probabilities keeps its logarithms above a bound.

Each is a composition, so its gradient is that of its steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad import ops
from minigrad.arguments import number, public_in_precision
from minigrad.device import is_host, xp
from minigrad.engine.operands import broadcasts_to
from minigrad.engine.primitive import primitive
from minigrad.functional.loss import check_reduction, constant_like
from minigrad.tensor import as_tensor

LOWEST_LOG = -100.0  # PyTorch's bound, too
STEEPEST = 1e12  # the bound of a logarithm's slope: a probability of 0 can still be learnt


@public_in_precision("float32")
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


@public_in_precision("float32")
def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """The absolute error ``|d|``. `input`, `target`, `reduction` and errors as for `mse_loss`."""
    check_reduction(reduction, "l1_loss")
    input, target = matching(input, target, "l1_loss")
    return reduce_losses(ops.absolute(input - target), reduction)


@public_in_precision("float32")
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    """``d²/2`` where ``|d| ≤ δ``, and from there straight on with slope δ: ``δ(|d| - δ/2)`` (Huber 1964).

    Args:
        input, target, reduction: as for `mse_loss`.
        delta: δ, positive.

    Raises:
        ValueError: as `mse_loss`, and for a δ that is not positive.
    """
    check_reduction(reduction, "huber_loss")
    if not number(delta, "delta", "huber_loss") > 0:
        raise ValueError(f"huber_loss: delta must be positive, got {delta}")
    input, target = matching(input, target, "huber_loss")
    difference = input - target
    # With a = d kept within ±δ, a (d - a/2) is both pieces in one, and no square overflows where it is not wanted.
    kept = ops.clip(difference, -float(delta), float(delta))
    return reduce_losses(kept * (difference - kept * 0.5), reduction)


@public_in_precision("float32")
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
    number(beta, "beta", "smooth_l1_loss", 0)
    input, target = matching(input, target, "smooth_l1_loss")
    difference = input - target
    if beta == 0:
        return reduce_losses(ops.absolute(difference), reduction)
    kept = ops.clip(difference, -float(beta), float(beta))  # as in `huber_loss`
    return reduce_losses(kept * (1 / beta) * (difference - kept * 0.5), reduction)


@primitive(floating=True)
def bounded_log(x):
    """``log x``, but never below -100; its slope ``1/x`` is never above 10¹²."""
    return bounded(xp(x).log, x, x == 0)


@primitive(floating=True)
def bounded_log1p(x):
    """``log(1 + x)``, bounded in the same way."""
    return bounded(xp(x).log1p, x, x == -1)


def bounded(logarithm: Any, x: Any, pole: Any) -> Any:
    """The logarithm of x, at least `LOWEST_LOG`, which it is at its pole."""
    namespace = xp(x)
    out = namespace.maximum(logarithm(namespace.where(pole, x.dtype.type(1), x)), LOWEST_LOG)
    return namespace.where(pole, x.dtype.type(LOWEST_LOG), out)


bounded_log.gradient(x=lambda g, x: bounded_quotient(g, x))
bounded_log1p.gradient(x=lambda g, x: bounded_quotient(g, 1 + x))


def bounded_quotient(g: Any, x: Any) -> Any:
    """``g / x`` for x ≥ 0, with x kept above 10⁻¹² or, of float16, above its smallest normal number."""
    return g / ops.maximum(x, max(1 / STEEPEST, float(np.finfo(x.dtype).tiny)))


@public_in_precision("float32")
def binary_cross_entropy(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """``-w (t log p + (1 - t) log(1 - p))``, of probabilities p; a logarithm is never below -100, as in PyTorch.

    `binary_cross_entropy_with_logits` is the same of a sigmoid's input, exact where the sigmoid has rounded to 0 or 1.

    Args:
        input: the probabilities p, any shape; on the host they are checked.
        target: the probabilities t, of the same shape, as a rule 0 or 1; a tensor, an array or lists.
        weight: w, a factor for each loss, that broadcasts to them.
        reduction: ``"mean"`` over all elements, ``"sum"``, or ``"none"``: one loss an element.

    Raises:
        ValueError: shapes that do not fit, a probability outside [0, 1], an unknown reduction.
    """
    check_reduction(reduction, "binary_cross_entropy")
    input, target = matching(input, target, "binary_cross_entropy")
    if is_host(input.data) and input.size and not (input.data.min() >= 0 and input.data.max() <= 1):
        raise ValueError(f"binary_cross_entropy: input must be probabilities in [0, 1], got values from "
                         f"{input.data.min()} to {input.data.max()}; binary_cross_entropy_with_logits takes logits")
    losses = -(target * bounded_log(input) + (1 - target) * bounded_log1p(-input))
    return reduce_losses(weighted(losses, weight, "weight", "binary_cross_entropy"), reduction)


@public_in_precision("float32")
def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any = None, reduction: str = "mean",
                                     pos_weight: Any = None) -> Any:
    """``-w (ω t log σ(x) + (1 - t) log σ(-x))``, of logits x, with ``-log σ(x) = log(1 + e⁻ˣ)``: no overflow.

    Args:
        input: the logits x, any shape.
        target: the probabilities t, of the same shape, as a rule 0 or 1; a tensor, an array or lists.
        weight: w, a factor for each loss, that broadcasts to them.
        reduction: ``"mean"`` over all elements, ``"sum"``, or ``"none"``: one loss an element.
        pos_weight: ω, a factor for the positive part, that broadcasts to the losses: one for each class, for example.

    Raises:
        ValueError: shapes that do not fit, an unknown reduction.
    """
    check_reduction(reduction, "binary_cross_entropy_with_logits")
    input, target = matching(input, target, "binary_cross_entropy_with_logits")
    # Two terms that are not negative: nothing cancels, so that a small loss has its digits.
    positive = weighted(target * ops.logaddexp(-input, 0.0), pos_weight, "pos_weight",
                        "binary_cross_entropy_with_logits")
    losses = positive + (1 - target) * ops.logaddexp(input, 0.0)
    return reduce_losses(weighted(losses, weight, "weight", "binary_cross_entropy_with_logits"), reduction)


def weighted(losses: Any, factor: Any, name: str, operation: str) -> Any:
    """The losses, each times its factor; None is 1. ValueError for a factor that would broadcast the losses."""
    if factor is None:
        return losses
    factor = constant_like(factor, losses, operation)
    if not broadcasts_to(factor.shape, losses.shape):
        raise ValueError(f"{operation}: {name} must broadcast to the input, got {factor.shape} and {losses.shape}")
    return losses * factor


@public_in_precision("float32")
def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    """The terms ``t (log t - x)`` of the Kullback-Leibler divergence from a distribution t to one whose logarithm is x.

    Args:
        input: log-probabilities x, any shape.
        target: probabilities t, of the same shape, or their logarithms; a tensor, an array or lists.
        reduction: ``"batchmean"``, the sum divided by the length of the first axis: with one distribution a row, the
            mean divergence. Or ``"mean"`` over all elements, ``"sum"``, ``"none"``.
        log_target: whether `target` holds logarithms.

    Raises:
        ValueError: shapes that differ, an unknown reduction.
    """
    check_reduction(reduction, "kl_div", ("batchmean", "mean", "sum", "none"))
    input, target = matching(input, target, "kl_div")
    impossible = ops.equal(target, -math.inf if log_target else 0)  # where t = 0 the term is 0, whatever x is
    input = ops.where(impossible, 0.0, input)
    if log_target:
        target = ops.where(impossible, 0.0, target)
        terms = ops.exp(target) * (target - input)
    else:
        target = ops.where(impossible, 1.0, target)
        terms = target * (ops.log(target) - input)
    terms = ops.where(impossible, 0.0, terms)
    if reduction != "batchmean":
        return reduce_losses(terms, reduction)
    if not terms.ndim:
        raise ValueError("kl_div: reduction 'batchmean' needs a batch axis, got a 0-d input; use 'sum'")
    return terms.sum() / terms.shape[0]


def matching(input: Any, target: Any, operation: str) -> tuple[Any, Any]:
    """The input and the target as tensors of one shape; an array or a list is sent to where the input is.

    Raises ValueError for shapes that differ: an input (N,) and a target (N, 1) would broadcast to N × N differences.
    """
    input = as_tensor(input)
    target = constant_like(target, input, operation)
    if input.dtype.kind != "f" and target.dtype.kind != "f":
        input = input.astype(np.float32)
    if input.shape != target.shape:
        raise ValueError(f"{operation}: input.shape == target.shape, got {input.shape} and {target.shape}")
    return input, target


def reduce_losses(losses: Any, reduction: str) -> Any:
    """The mean of the losses, their sum, or the losses themselves."""
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()
