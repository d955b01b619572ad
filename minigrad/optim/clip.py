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

LEAST = 1e-14  # below this norm, squares of float32 have lost digits or are 0


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
    host = is_host(arrays[0])
    norm_of, scale = (faster and faster(arrays)) or (norm_of_each, scale_each)
    with on_device_of(arrays[0]), np.errstate(over="ignore", invalid="ignore"):  # they may be NaN afterwards
        norm = norm_of(arrays)
        if host and (norm < LEAST or norm == inf):  # squares leave the range of a dtype long before the values do
            largest = max(float(np.abs(array).max(initial=0)) for array in arrays)
            if 0 < largest < inf:
                norm = largest * norm_of_each([array.astype(np.float64) / largest for array in arrays])
        if max_norm == inf or (host and norm <= max_norm):
            return norm
        # On a GPU at most 1, and exactly 1 within the bound: no branch on a norm that the host does not know yet.
        coefficient = max_norm / (norm if host else xp(norm).maximum(norm, max_norm))
        for g in gradients:
            g.bump_tick()
        scale(arrays, coefficient)
    return norm


def norm_of_each(arrays: list[Any]) -> Any:
    """The norm of all elements, by the squares of each array."""
    squares = [array.dot(array) for array in (widened(array.reshape(-1)) for array in arrays)]
    return sqrt(sum(map(float, squares))) if is_host(arrays[0]) else xp(squares[0]).sqrt(sum(squares))


def scale_each(arrays: list[Any], factor: Any) -> None:
    """Multiply all elements, in place; float16 would round the factor."""
    for array in arrays:
        xp(array).multiply(widened(array), factor, out=array)


# Given arrays that a kernel takes all together, it returns what stands for the two functions above; of others, None.
faster: Any = None
