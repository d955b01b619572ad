"""Cross-entropy with label smoothing (Szegedy et al. 2016, arXiv:1512.00567, section 7), class weights and an ignored
index; and the negative log-likelihood, which is its second half."""

from __future__ import annotations

from typing import Any

from minigrad import ops
from minigrad.arguments import in_precision, public
from minigrad.device import is_host, xp
from minigrad.device.writing import fill_rows
from minigrad.engine.primitive import Saved, primitive
from minigrad.functional.softmax import log_softmax
from minigrad.functional.targets import check_reduction, class_ids, class_weights, weighted_mean
from minigrad.tensor import as_tensor

BLOCK = 1 << 17  # elements of the logits worked on at a time on the host: small enough to stay in the cache


def cross_entropy_by_steps(logits: Any, target: Any, counted: Any, label_smoothing: float = 0.0) -> Any:
    """The losses of all rows as a composition of small operations."""
    log_probabilities = log_softmax(ops.where(counted[:, None], logits, 0.0), axis=-1)  # the others may be NaN
    picked = ops.gather(log_probabilities, 1, target[:, None]).squeeze(1)
    uniform = log_probabilities.mean(axis=-1)
    losses = -(1 - label_smoothing) * picked - label_smoothing * uniform if label_smoothing else -picked
    return ops.where(counted, losses, 0.0)


@primitive(floating=True, composition=cross_entropy_by_steps, precision="float32")
def row_losses(logits, target, counted, label_smoothing=0.0):
    """The loss of each row, 0 where it is not `counted`; ``log Σ eˣ`` is computed in blocks, and kept.

    With L = log Σⱼ exp xⱼ and q = (1 - ε)·onehot(target) + ε/C:  loss = -Σ q log p = L - Σⱼ qⱼ xⱼ.
    """
    namespace, rows = xp(logits), logits.shape[0]
    total = namespace.empty(rows, logits.dtype)
    uniform = namespace.empty(rows, logits.dtype) if label_smoothing else None
    top = logits.max(axis=1, keepdims=True) if rows else namespace.zeros((0, 1), logits.dtype)
    for block in blocks(logits):
        shifted = logits[block] - top[block]
        if uniform is not None:
            uniform[block] = shifted.mean(axis=1)
        namespace.exp(shifted, out=shifted)
        total[block] = shifted.sum(axis=1)
    log_total, top = namespace.log(total), top[:, 0]
    picked = logits[namespace.arange(rows), target] - top  # from here on all is relative to the row's maximum, so that
    losses = log_total - (1 - label_smoothing) * picked    # large logits do not swallow the digits of a small loss
    if uniform is not None:
        losses -= label_smoothing * uniform
    return namespace.where(counted, losses, logits.dtype.type(0)), Saved(log_total=log_total + top)


@row_losses.joint_gradient("logits")
def row_losses_gradient(g, logits, target, counted, label_smoothing, saved):
    # forward: loss = L(x) - Σ q x, counted rows only      so here: dx = g · (softmax(x) - q), 0 for the other rows
    namespace, g = xp(logits), g[:, None]
    gradient = namespace.empty_like(logits)
    for block in blocks(logits):
        part = gradient[block]
        namespace.subtract(logits[block], saved.log_total[block, None], out=part)
        namespace.exp(part, out=part)
        if label_smoothing:
            part -= label_smoothing / logits.shape[1]
        part[namespace.arange(part.shape[0]), target[block]] -= 1 - label_smoothing
        part *= g[block]
    fill_rows(gradient, ~counted, 0)  # not a factor of 0: what is not counted may be NaN
    return (gradient,)


def blocks(logits: Any) -> list[slice]:
    """The rows in blocks of about `BLOCK` elements on the host, all at once on a GPU."""
    rows, classes = logits.shape
    step = max(1, BLOCK // max(1, classes)) if is_host(logits) else max(1, rows)
    return [slice(start, start + step) for start in range(0, rows, step)]


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


@in_precision("float32")
@public
def cross_entropy(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:
    """The cross-entropy between logits and target ids, in nats.

    With ε = `label_smoothing` and C classes, the target distribution is ``(1 - ε)·onehot + ε/C``, as in PyTorch.

    Args:
        input: logits (…, C).
        target: integer ids (…), in [0, C) or `ignore_index`: a tensor, an array or lists. On the host they are checked,
            and then sent to where `input` is.
        weight: (C,), a factor for what each class adds to a loss; a tensor, an array or a list.
        ignore_index: rows with this target count for nothing: whatever their logits are, NaN too, their loss and
            their gradient are 0.
        reduction: ``"mean"`` over the rows that count, each counting as much as the weight of its target (0 if there
            are none), ``"sum"``, or ``"none"``: one loss a row.

    Raises:
        ValueError: shapes that do not match, an unknown reduction, smoothing outside [0, 1].
        TypeError: targets that are not integers, weights that are not floating.
        IndexError: a target out of range.
    """
    ids, counted = class_ids(target, input.shape, input.device, ignore_index, "cross_entropy")
    check_reduction(reduction, "cross_entropy")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing must be in [0, 1], got {label_smoothing}")
    rows = input.reshape(-1, input.shape[-1])
    if weight is not None:
        weight = class_weights(weight, input, "cross_entropy")
        losses = weighted_row_losses(rows, ids, counted, weight, label_smoothing)
        return reduce_rows(losses, ids, counted, weight, reduction, input.shape[:-1])
    losses = row_losses(rows, ids, counted, label_smoothing)
    if reduction == "none":
        return losses.reshape(input.shape[:-1])
    if reduction == "sum":
        return losses.sum()
    return weighted_mean(losses, as_tensor(counted))


@in_precision("float32")
@public
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
    return weighted_mean(losses, as_tensor(counted) if weight is None else ops.take(weight, target, axis=0) * counted)
