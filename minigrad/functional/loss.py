"""Cross-entropy with label smoothing (Szegedy et al. 2016, arXiv:1512.00567, section 7), class weights and an ignored
index; and the negative log-likelihood, which is its second half."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import ops
from minigrad.arguments import numbers_on, public_in_precision, whole_number
from minigrad.device import is_array, is_host, on_device_of, to_device, xp
from minigrad.engine.node import Saved, TensorBase, wrap
from minigrad.engine.primitive import primitive
from minigrad.functional.embedding import check_ids
from minigrad.functional.more.class_probabilities import soft_cross_entropy
from minigrad.functional.softmax import log_softmax, maximum
from minigrad.tensor import as_tensor

REDUCTIONS = ("mean", "sum", "none")


def cross_entropy_by_steps(logits: Any, target: Any, counted: Any, label_smoothing: float = 0.0) -> Any:
    """The losses of all rows as a composition of small operations."""
    log_probabilities = log_softmax(ops.where(counted[:, None], logits, 0.0), axis=-1)  # the others may be NaN
    picked = ops.gather(log_probabilities, 1, target[:, None]).squeeze(1)
    uniform = log_probabilities.mean(axis=-1)
    losses = -(1 - label_smoothing) * picked - label_smoothing * uniform if label_smoothing else -picked
    return ops.where(counted, losses, 0.0)


@primitive(floating=True, composition=cross_entropy_by_steps, precision="float32", fresh=True)
def row_losses(logits, target, counted, label_smoothing=0.0):
    """The loss of each row, 0 where it is not `counted`; keeps ``L = log Σⱼ exp xⱼ`` of each row, in two parts.

    With q = (1 - ε)·onehot(target) + ε/C:  loss = -Σ q log p = L - Σⱼ qⱼ xⱼ. Of a row of -inf alone all p are 0, as in
    `log_softmax`, and the loss is ∞.

    Args:
        logits: x, (N, C)
        target: N ids in [0, C)
        counted: N booleans
        label_smoothing: ε
    """
    namespace, row = xp(logits), xp(logits).arange(logits.shape[0])
    top = maximum(logits, 1) if logits.size else namespace.zeros((len(row), 1), logits.dtype)
    shifted = logits - top  # relative to the maximum, large logits do not swallow the digits of a small loss
    log_total = namespace.log(namespace.maximum(namespace.exp(shifted).sum(axis=1), 1))  # below 1 if all are -inf
    losses = log_total - (1 - label_smoothing) * shifted[row, target]
    if label_smoothing:
        losses = losses - label_smoothing * shifted.mean(axis=1)
    return namespace.where(counted, losses, logits.dtype.type(0)), Saved(top=top, log_total=log_total)


@row_losses.joint_gradient("logits")
def row_losses_gradient(g, logits, target, counted, label_smoothing, saved):
    # forward: loss = L(x) - Σ q x, counted rows only      so here: dx = g · (p - q), p = softmax(x) = exp(x - L)
    namespace = xp(logits)
    difference = namespace.exp(logits - saved.top - saved.log_total[:, None])  # p
    if label_smoothing:
        difference -= label_smoothing / max(1, logits.shape[1])
    difference[namespace.arange(logits.shape[0]), target] -= 1 - label_smoothing
    return (namespace.where(counted[:, None], g[:, None] * difference, logits.dtype.type(0)),)


@public_in_precision("float32")
def cross_entropy(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:
    """The cross-entropy between logits and target ids, or probabilities, in nats.

    With ε = `label_smoothing` and C classes, the target distribution is ``(1 - ε)·onehot + ε/C``, as in PyTorch.

    Args:
        input: logits (…, C).
        target: integer ids (…), in [0, C) or `ignore_index`: a tensor, an array or lists. On the host they are checked,
            and then sent to where `input` is. Or floating (…, C), the probabilities of the classes: then no row is
            ignored, and the mean is over all rows.
        weight: (C,), a factor for what each class adds to a loss; a tensor, an array or a list.
        ignore_index: rows with this target count for nothing: whatever their logits are, NaN too, their loss and
            their gradient are 0.
        reduction: ``"mean"`` over the rows that count, each counting as much as the weight of its target, ``"sum"``,
            or ``"none"``: one loss a row. The mean over no rows, where all targets are ignored, is 0 with gradient 0,
            where PyTorch's is NaN.

    Raises:
        ValueError: shapes that do not match, an unknown reduction, smoothing outside [0, 1].
        TypeError: ids that are not integers, weights that are not floating.
        IndexError: a target out of range.
    """
    check_reduction(reduction, "cross_entropy")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing must be in [0, 1], got {label_smoothing}")
    shape = input.shape
    if weight is not None or np.shape(target) == shape:
        return weighted_cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)
    ids, counted = class_ids(target, shape, input.device, ignore_index, "cross_entropy")
    losses = row_losses(ops.reshape(input, (-1, shape[-1])), ids, counted, label_smoothing)
    if reduction == "none":
        return losses.reshape(shape[:-1])
    if reduction == "sum":
        return losses.sum()
    return mean_of_counted(losses, counted)


def weighted_cross_entropy(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str,
                           label_smoothing: float) -> Any:
    """`cross_entropy` of classes with weights, or of a target with the shape of the input, of probabilities."""
    weight = None if weight is None else class_weights(weight, input, "cross_entropy")
    dtype = target.dtype if hasattr(target, "dtype") else np.asarray(target).dtype
    if np.shape(target) == input.shape and dtype.kind == "f":
        target = constant_like(target, input, "cross_entropy")
        return soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    ids, counted = class_ids(target, input.shape, input.device, ignore_index, "cross_entropy")
    losses = weighted_row_losses(ops.reshape(input, (-1, input.shape[-1])), ids, counted, weight, label_smoothing)
    return reduce_rows(losses, ids, counted, weight, reduction, input.shape[:-1])


def weighted_row_losses(logits: Any, target: Any, counted: Any, weight: Any, label_smoothing: float) -> Any:
    """The losses of all rows with the classes weighted: ``-Σⱼ qⱼ wⱼ log pⱼ``, q as in `row_losses`."""
    log_probabilities = log_softmax(ops.where(counted[:, None], logits, 0.0), axis=-1)
    losses = negative_log_likelihoods(log_probabilities, target, counted, weight)
    if not label_smoothing:
        return losses
    uniform = ops.where(counted, (log_probabilities * weight).mean(axis=-1), 0.0)
    return (1 - label_smoothing) * losses - label_smoothing * uniform


def negative_log_likelihoods(log_probabilities: Any, target: Any, counted: Any, weight: Any = None) -> Any:
    """``-w[target] · log p[target]`` of each row, 0 where it is not `counted`."""
    picked = ops.where(counted, ops.gather(log_probabilities, 1, target[:, None]).squeeze(1), 0.0)
    return -picked if weight is None else -(picked * ops.take(weight, target, axis=0))


@public_in_precision("float32")
def nll_loss(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """The negative log-likelihood ``-w[y] · input[…, y]`` of target ids y, given log-probabilities.

    Of the output of `log_softmax` it is `cross_entropy`.

    Args:
        input: log-probabilities (…, C); the classes are along the last axis, as in `cross_entropy`.
        target, weight, ignore_index, reduction: as in `cross_entropy`.

    Raises:
        ValueError, TypeError, IndexError: as `cross_entropy`.
    """
    input = as_tensor(input)
    ids, counted = class_ids(target, input.shape, input.device, ignore_index, "nll_loss")
    check_reduction(reduction, "nll_loss")
    weight = None if weight is None else class_weights(weight, input, "nll_loss")
    losses = negative_log_likelihoods(input.reshape(-1, input.shape[-1]), ids, counted, weight)
    return reduce_rows(losses, ids, counted, weight, reduction, input.shape[:-1])


def reduce_rows(losses: Any, target: Any, counted: Any, weight: Any, reduction: str, shape: tuple[int, ...]) -> Any:
    """The losses of all rows in `shape`, their sum, or their mean by the weights of the rows that count."""
    if reduction == "none":
        return losses.reshape(shape)
    if reduction == "sum":
        return losses.sum()
    if weight is None:
        return mean_of_counted(losses, counted)
    return weighted_mean(losses, ops.take(weight, target, axis=0) * counted)


def mean_of_counted(losses: Any, counted: Any) -> Any:
    """The sum of the losses, 0 where they do not count, divided by how many do; 0 if none do.

    float16 ends at 65504, which sums of many losses exceed and their mean does not: it is computed in float32.
    """
    if losses.dtype == np.float16:
        return mean_of_counted(losses.astype(np.float32), counted).astype(np.float16)
    with on_device_of(counted):
        count = xp(counted).maximum(counted.sum(), 1)
        return losses.sum() / wrap(count.astype(losses.dtype))


def weighted_mean(losses: Any, weights: Any) -> Any:
    """``Σ losses / Σ weights``, 0 if the weights sum to 0. The losses carry their weights already."""
    if losses.dtype == np.float16:
        return weighted_mean(losses.astype(np.float32), weights.astype(np.float32)).astype(np.float16)
    count = weights.sum()
    return losses.sum() / ops.where(ops.equal(count, 0), 1, count)


def check_reduction(reduction: str, operation: str, allowed: tuple[str, ...] = REDUCTIONS) -> None:
    """ValueError unless `reduction` is one of the `allowed`."""
    if reduction not in allowed:
        raise ValueError(f"{operation}: reduction must be {', '.join(map(repr, allowed[:-1]))} or {allowed[-1]!r}, got "
                         f"{reduction!r}")


def class_ids(target: Any, shape: tuple[int, ...], device: str, ignore_index: int, operation: str) -> tuple[Any, Any]:
    """Target ids (…) for logits of `shape` (…, C), as flat arrays on `device`: the ids, 0 where ignored; which count.

    Raises TypeError for targets that are not integers, ValueError for a shape that does not fit, IndexError for an id
    out of range (of those on the host).
    """
    ids = target._data if isinstance(target, TensorBase) else target
    ids = ids if is_array(ids) else np.asarray(ids)
    ignore_index = whole_number(ignore_index, "ignore_index", operation, least=None)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{operation}: targets must be integers, got {ids.dtype}")
    if tuple(shape[:-1]) != tuple(ids.shape) or not shape:
        raise ValueError(f"{operation}: input.shape[:-1] == target.shape, classes in the last axis, got "
                         f"{tuple(shape)} and {tuple(ids.shape)}")
    ids = ids.reshape(-1)
    if is_host(ids):
        check_ids(ids[ids != ignore_index], shape[-1], operation)
        ids = to_device(ids, device)
    with on_device_of(ids):
        counted = ids != ignore_index
        return xp(ids).where(counted, ids, 0), counted


def class_weights(weight: Any, input: Any, operation: str) -> Any:
    """The weights of the classes, (C,), as a tensor where the input (…, C) is."""
    weight = constant_like(weight, input, operation)
    if weight.dtype.kind != "f":
        raise TypeError(f"{operation}: weight must be floating, one number for each class, got {weight.dtype}")
    if weight.shape != input.shape[-1:]:
        raise ValueError(f"{operation}: weight.shape == (input.shape[-1],), got {weight.shape} and "
                         f"{tuple(input.shape)}")
    return weight


def constant_like(values: Any, input: Any, operation: str) -> Any:
    """A tensor as it is; an array or numbers as a tensor where `input` is, in its dtype (float32 if that is none)."""
    if isinstance(values, TensorBase):
        return values
    dtype = input.dtype if input.dtype.kind == "f" else np.float32
    return as_tensor(numbers_on(input.device, values, dtype, operation))
