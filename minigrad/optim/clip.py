"""Gradient clipping, between ``backward()`` and ``optimizer.step()``."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, nextafter, sqrt
from typing import Any

import numpy as np

from minigrad.arguments import number
from minigrad.device import is_host, on_device_of, xp
from minigrad.device.sums import widened
from minigrad.engine.watch import span
from minigrad.tensor import Tensor

# By the module of arrays: whether it takes these gradients, their norm, and their scaling, in one launch for all.
MANY: dict[str, tuple[Any, Any, Any]] = {}
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
    max_norm = number(max_norm, "max_norm", "clip_grad_norm_", nextafter(0, 1))
    tensors = [parameters] if isinstance(parameters, Tensor) else parameters
    gradients = [p.grad for p in tensors if p.grad is not None]
    arrays = [g.data for g in gradients]
    if not arrays:
        return 0.0
    host = all(map(is_host, arrays))
    may, norm_of, scale = MANY.get(type(arrays[0]).__module__, (None, None, None))
    many = may is not None and may(arrays)
    with on_device_of(arrays[0]), np.errstate(over="ignore", invalid="ignore"):  # they may be NaN afterwards
        if many:
            norm = norm_of(arrays)
        else:
            flat = [widened(array.reshape(-1)) for array in arrays]
            squares = [array.dot(array) for array in flat]
            norm = sqrt(sum(map(float, squares))) if host else xp(squares[0]).sqrt(sum(squares[1:], start=squares[0]))
        if host and (norm < LEAST or norm == inf):  # squares leave the range of a dtype long before the values do
            norm = _scaled_norm(arrays)
        if max_norm == inf or (host and norm <= max_norm):
            return norm
        # On a GPU at most 1, and exactly 1 within the bound: no branch on a norm that the host does not know yet.
        coefficient = max_norm / (norm if host else xp(norm).maximum(norm, max_norm))
        for g, array in zip(gradients, arrays, strict=True):
            g.bump_tick()
            if not many:
                xp(array).multiply(widened(array), coefficient, out=array)  # float16 would round the coefficient, too
        if many:
            scale(arrays, coefficient)
    return norm


def _scaled_norm(arrays: list[Any]) -> float:
    """The norm by squares of what is at most 1."""
    largest = max(float(np.abs(array).max(initial=0)) for array in arrays)
    if not 0 < largest < inf:
        return largest
    return largest * sqrt(sum(float(np.square(array.astype(np.float64) / largest).sum()) for array in arrays))
