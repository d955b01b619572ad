"""Gradient clipping, between ``backward()`` and ``optimizer.step()``."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, sqrt
from typing import Any

import numpy as np

from minigrad.arguments import number
from minigrad.device import is_host, on_device_of, xp
from minigrad.engine.watch import span
from minigrad.tensor import Tensor

LEAST = 1e-14  # a norm below which squares of float32 have lost digits, or are 0


@span("clip_grad_norm_")
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float) -> Any:
    """Scale all gradients together, in place, so that their norm is at most `max_norm`.

    The norm is the Euclidean one of all gradients as a single vector: Pascanu, Mikolov and Bengio, "On the
    difficulty of training recurrent neural networks", 2013, algorithm 1. If it is at most `max_norm`, no
    gradient changes.

    Args:
        parameters: tensors; those without a gradient are passed over.
        max_norm: the bound; infinity only measures.

    Returns:
        The norm before clipping: a float, or for gradients on a GPU a 0-d array there, so that nothing waits
            for it.

    Raises:
        ValueError: `max_norm` is not above 0.
    """
    max_norm = float(number(max_norm, "max_norm", "clip_grad_norm_"))
    if not max_norm > 0:
        raise ValueError(f"clip_grad_norm_: max_norm must be above 0, got {max_norm!r}")
    tensors = [parameters] if isinstance(parameters, Tensor) else parameters
    gradients = [p.grad for p in tensors if p.grad is not None]
    if not gradients:
        return 0.0
    host = all(is_host(g.data) for g in gradients)
    with on_device_of(gradients[0].data), np.errstate(over="ignore", invalid="ignore"):  # they may be NaN afterwards
        squares = [_sum_of_squares(g.data) for g in gradients]
        norm = sqrt(sum(map(float, squares))) if host else xp(squares[0]).sqrt(sum(squares[1:], start=squares[0]))
        if host and (norm < LEAST or norm == inf):  # squares leave the range of float32 long before the values do
            norm = sqrt(sum(float(np.square(g.data, dtype=np.float64).sum()) for g in gradients))
        if max_norm == inf or (host and norm <= max_norm):
            return norm
        # On a GPU at most 1, and exactly 1 within the bound: no branch on a norm that the host does not know yet.
        coefficient = max_norm / (norm if host else xp(norm).maximum(norm, max_norm))
        for g in gradients:
            g.bump_tick()
            array = g.data
            array *= coefficient
    return norm


def _sum_of_squares(array: Any) -> Any:
    flat = array.reshape(-1)
    if flat.dtype == np.float16:  # whose squares overflow at 256
        flat = flat.astype(np.float32)
    return flat.dot(flat)
