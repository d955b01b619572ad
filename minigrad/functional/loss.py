"""Cross-entropy with label smoothing (Szegedy et al. 2016, arXiv:1512.00567, section 7) and an ignored index; the
negative log-likelihood, which is its second half; and the squared error."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minigrad import ops
from minigrad.arguments import numbers_on
from minigrad.device import on_device_of, to_device, xp
from minigrad.device.sums import narrowed, widened
from minigrad.engine.node import Saved, TensorBase, wrap
from minigrad.engine.primitive import primitive, public, public_in_precision
from minigrad.functional.embedding import integer_ids
from minigrad.functional.softmax import row_maximum
from minigrad.tensor import as_tensor


def losses_by_steps(logits: Any, target: Any, counted: Any, label_smoothing: float = 0.0) -> Any:
    """row_losses of tensors. What does not count may be NaN, and so would be 0 · NaN in its gradient: it goes first."""
    return row_losses.forward(ops.where(counted[:, None], logits, 0.0), target, counted, label_smoothing)


@primitive(floating=True, composite=losses_by_steps, precision="float32", fresh=True)
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
    wide = widened(logits)
    top = row_maximum(wide, 1)
    shifted = wide - top  # relative to the maximum, large logits do not swallow the digits of a small loss
    total = ops.exp(shifted).sum(axis=1)
    log_total = ops.log(total + (total == 0))  # 0 if all are -inf
    losses = log_total - (1 - label_smoothing) * shifted[xp(target).arange(len(target)), target]
    if label_smoothing:
        losses = losses - label_smoothing * shifted.mean(axis=1)
    return narrowed(ops.where(counted, losses, 0.0), logits.dtype), Saved(top=top, log_total=log_total)


@row_losses.joint_gradient("logits")
def row_losses_gradient(g, logits, target, counted, label_smoothing, saved):
    # forward: loss = L(x) - Σ q x, counted rows only      so here: dx = g · (p - q), p = softmax(x) = exp(x - L)
    namespace = xp(logits)
    difference = namespace.exp(logits - saved.top - saved.log_total[:, None])  # p
    if label_smoothing:
        difference -= label_smoothing / max(1, logits.shape[1])
    difference[namespace.arange(logits.shape[0]), target] -= 1 - label_smoothing
    return (ops.where(counted[:, None], g[:, None] * difference, 0.0),)


@public
def cross_entropy(input: Any, target: Any, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:
    """The cross-entropy between logits and target ids, in nats.

    With ε = `label_smoothing` and C classes, the target distribution is ``(1 - ε)·onehot + ε/C``, as in PyTorch.

    Args:
        input: logits (…, C).
        target: integer ids (…), in [0, C) or `ignore_index`: a tensor, an array or lists. On the host they are checked,
            and then sent to where `input` is.
        ignore_index: rows with this target count for nothing: whatever their logits are, NaN too, their loss and
            their gradient are 0.
        reduction: ``"mean"`` over the rows that count, ``"sum"``, or ``"none"``: one loss a row. The mean over no
            rows, where all targets are ignored, is 0 with gradient 0, where PyTorch's is NaN.

    Raises:
        ValueError: shapes that do not match, an unknown reduction, smoothing outside [0, 1].
        TypeError: ids that are not integers.
        IndexError: a target out of range.
    """
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing must be in [0, 1], got {label_smoothing}")
    shape = input.shape
    ids, counted = class_ids(target, shape, input.device, ignore_index)
    losses = row_losses(ops.reshape(input, (-1, shape[-1])), ids, counted, label_smoothing)
    return reduced(losses, reduction, shape[:-1], counted)


@public_in_precision("float32")
def nll_loss(input: Any, target: Any, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """The negative log-likelihood ``-input[…, y]`` of target ids y, given log-probabilities.

    Of the output of `log_softmax` it is `cross_entropy`.

    Args:
        input: log-probabilities (…, C); the classes are along the last axis, as in `cross_entropy`.
        target, ignore_index, reduction: as in `cross_entropy`.

    Raises:
        ValueError, TypeError, IndexError: as `cross_entropy`.
    """
    input = as_tensor(input)
    ids, counted = class_ids(target, input.shape, input.device, ignore_index)
    picked = ops.gather(input.reshape(-1, input.shape[-1]), 1, ids[:, None]).squeeze(1)
    return reduced(-ops.where(counted, picked, 0.0), reduction, input.shape[:-1], counted)


@public_in_precision("float32")
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """The squared error ``(input - target)²``.

    Args:
        input: any shape.
        target: of the same shape; a tensor, or an array or lists, which are sent to where the input is.
        reduction: ``"mean"`` over all elements, ``"sum"``, or ``"none"``: one loss an element.

    Raises:
        ValueError: shapes that differ (an input (N,) and a target (N, 1) would broadcast to N × N differences), an
            unknown reduction.
    """
    input = as_tensor(input)
    if not isinstance(target, TensorBase):
        dtype = input.dtype if input.dtype.kind == "f" else np.float32
        target = as_tensor(numbers_on(input.device, target, dtype, "mse_loss"))
    if input.dtype.kind != "f" and target.dtype.kind != "f":
        input = input.astype(np.float32)
    if input.shape != target.shape:
        raise ValueError(f"mse_loss: needs input.shape == target.shape, got {input.shape} and {target.shape}")
    difference = input - target
    return reduced(difference * difference, reduction, input.shape)


def reduced(losses: Any, reduction: str, shape: tuple[int, ...], counted: Any = None) -> Any:
    """The losses in `shape`; their sum; or their mean, over those that are `counted`. The others are 0.

    The mean is 0 if none are. float16 ends at 65504, which sums of many losses exceed: its mean is computed in float32.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    if reduction != "mean":
        return losses.sum() if reduction == "sum" else losses.reshape(shape)
    if counted is None:
        return losses.mean()
    wide = widened(losses)
    with on_device_of(counted):
        count = xp(counted).maximum(counted.sum(), 1)
        return narrowed(wide.sum() / wrap(count.astype(wide.dtype)), losses.dtype)


def class_ids(target: Any, shape: tuple[int, ...], device: str, ignore_index: int) -> tuple[Any, Any]:
    """Target ids (…) for logits of `shape` (…, C), as flat arrays on `device`: the ids, 0 where ignored; which count.

    Raises TypeError for targets that are not integers, ValueError for a shape that does not fit, IndexError for an id
    out of range (of those on the host).
    """
    ids = integer_ids(target, "the targets")
    if tuple(shape[:-1]) != tuple(ids.shape) or not shape:
        raise ValueError(f"needs input.shape[:-1] == target.shape, classes in the last axis, got {tuple(shape)} and "
                         f"{tuple(ids.shape)}")
    with on_device_of(ids):
        counted = ids.reshape(-1) != operator.index(ignore_index)
        ids = integer_ids(xp(ids).where(counted, ids.reshape(-1), 0), "the targets", shape[-1])
    return to_device(ids, device), to_device(counted, device)
