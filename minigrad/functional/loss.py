"""Cross-entropy with label smoothing (Szegedy et al. 2016, arXiv:1512.00567, section 7) and an ignored index."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import ops
from minigrad.device import is_array, is_host, on_device_of, to_device, xp
from minigrad.functional.embedding import check_ids
from minigrad.functional.softmax import log_softmax
from minigrad.primitive import Saved, primitive
from minigrad.tape import TensorBase

BLOCK = 1 << 17  # elements of the logits worked on at a time on the host: small enough to stay in the cache


def cross_entropy_by_steps(logits: Any, target: Any, counted: Any, label_smoothing: float = 0.0) -> Any:
    """The losses of all rows as a composition of small operations."""
    log_probabilities = log_softmax(logits, axis=-1)
    picked = ops.gather(log_probabilities, target[:, None], axis=1).squeeze(1)
    uniform = log_probabilities.mean(axis=-1)
    losses = -(1 - label_smoothing) * picked - label_smoothing * uniform if label_smoothing else -picked
    return ops.where(counted, losses, 0.0)


@primitive(floating=True, composition=cross_entropy_by_steps)
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
    namespace = xp(logits)
    g = namespace.where(counted, g, logits.dtype.type(0))[:, None]
    gradient = namespace.empty_like(logits)
    for block in blocks(logits):
        part = gradient[block]
        namespace.subtract(logits[block], saved.log_total[block, None], out=part)
        namespace.exp(part, out=part)
        if label_smoothing:
            part -= label_smoothing / logits.shape[1]
        part[namespace.arange(part.shape[0]), target[block]] -= 1 - label_smoothing
        part *= g[block]
    return (gradient,)


def blocks(logits: Any) -> list[slice]:
    """The rows in blocks of about `BLOCK` elements on the host, all at once on a GPU."""
    rows, classes = logits.shape
    step = max(1, BLOCK // max(1, classes)) if is_host(logits) else max(1, rows)
    return [slice(start, start + step) for start in range(0, rows, step)]


def cross_entropy(input: Any, target: Any, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:
    """The cross-entropy between logits and target ids, in nats.

    With ε = `label_smoothing` and C classes, the target distribution is ``(1 - ε)·onehot + ε/C``, as in PyTorch.

    Args:
        input: logits (…, C).
        target: integer ids (…), in [0, C) or `ignore_index`: a tensor, an array or lists. On the host they are checked,
            and then sent to where `input` is.
        ignore_index: rows with this target count for nothing.
        reduction: ``"mean"`` over the rows that count (0 if there are none), ``"sum"``, or ``"none"``: one loss a row.

    Raises:
        ValueError: shapes that do not match, an unknown reduction, smoothing outside [0, 1].
        TypeError: targets that are not integers.
        IndexError: a target out of range.
    """
    ids = target._data if isinstance(target, TensorBase) else target
    ids = ids if is_array(ids) else np.asarray(ids)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"cross_entropy: targets must be integers, got {ids.dtype}")
    if tuple(input.shape[:-1]) != tuple(ids.shape) or not input.shape:
        raise ValueError(f"cross_entropy: input.shape[:-1] == target.shape, got {tuple(input.shape)} and "
                         f"{tuple(ids.shape)}")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"cross_entropy: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing must be in [0, 1], got {label_smoothing}")
    shape, ids = ids.shape, ids.reshape(-1)
    if is_host(ids):
        check_ids(ids[ids != ignore_index], input.shape[-1], "cross_entropy")
        ids = to_device(ids, input.device)
    with on_device_of(ids):
        counted = ids != ignore_index
        ids = xp(ids).where(counted, ids, 0)
        count = xp(ids).maximum(counted.sum(), 1).astype(input.dtype)
    losses = row_losses(input.reshape(-1, input.shape[-1]), ids, counted, label_smoothing)
    if reduction == "none":
        return losses.reshape(shape)
    total = losses.sum()
    return total if reduction == "sum" else total / count
