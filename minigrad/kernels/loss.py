"""Cross-entropy in blocks of rows that stay in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.engine.node import Saved
from minigrad.functional.loss import row_losses as row_losses_definition

BLOCK = 1 << 17  # elements of the logits worked on at a time: small enough to stay in the cache


@row_losses_definition.faster("numpy")
def row_losses(logits, target, counted, label_smoothing=0.0):
    rows = logits.shape[0]
    total, uniform = np.empty((2, rows), logits.dtype)
    top = logits.max(axis=1, keepdims=True, initial=np.finfo(logits.dtype).min)  # a number, also of -inf alone
    for block in blocks(logits):
        shifted = logits[block] - top[block]
        if label_smoothing:
            uniform[block] = shifted.mean(axis=1)
        np.exp(shifted, out=shifted)
        total[block] = shifted.sum(axis=1)
    log_total, top = np.log(np.maximum(total, 1)), top[:, 0]  # below 1 where all are -inf
    picked = logits[np.arange(rows), target] - top  # from here on all is relative to the row's maximum, so that
    losses = log_total - (1 - label_smoothing) * picked  # large logits do not swallow the digits of a small loss
    if label_smoothing:
        losses -= label_smoothing * uniform
    return np.where(counted, losses, logits.dtype.type(0)), Saved(top=top, log_total=log_total)


@row_losses.joint_gradient("logits")
def row_losses_gradient(g, logits, target, counted, label_smoothing, saved):
    g = g[:, None]
    gradient = np.empty_like(logits)
    for block in blocks(logits):
        part = gradient[block]
        np.subtract(logits[block], saved.top[block, None], out=part)
        part -= saved.log_total[block, None]
        np.exp(part, out=part)
        if label_smoothing:
            part -= label_smoothing / logits.shape[1]
        part[np.arange(part.shape[0]), target[block]] -= 1 - label_smoothing
        part *= g[block]
    gradient[~counted] = 0  # not a factor of 0: what is not counted may be NaN
    return (gradient,)


def blocks(logits: Any) -> list[slice]:
    """The rows in blocks of about `BLOCK` elements."""
    rows, classes = logits.shape
    step = max(1, BLOCK // max(1, classes))
    return [slice(start, start + step) for start in range(0, rows, step)]
