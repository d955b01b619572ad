"""Gradient clipping, between ``backward()`` and ``optimizer.step()``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf, sqrt
from typing import Any, TypeVar

import numpy as np

from minigrad import parallel
from minigrad.arguments import number
from minigrad.device import is_host, on_device_of, xp
from minigrad.engine.interpreters import span
from minigrad.tensor import Tensor

T = TypeVar("T")

WORTH_A_THREAD = 1 << 21  # elements, whose squares take 0.5 ms to sum


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
    max_norm = number(max_norm, "max_norm", "clip_grad_norm_")
    if not max_norm > 0:
        raise ValueError(f"clip_grad_norm_: max_norm must be above 0, got {max_norm!r}")
    gradients = _gradients(parameters)
    if not gradients:
        return 0.0
    if all(is_host(g.data) for g in gradients):
        return _clip_on_host(gradients, float(max_norm))
    return _clip_on_gpu(gradients, float(max_norm))


def _clip_on_host(gradients: list[Tensor], max_norm: float) -> float:
    with np.errstate(over="ignore", invalid="ignore"):  # gradients that are not finite are NaN afterwards
        norm = sqrt(sum(_by_all_threads(lambda g: float(_sum_of_squares(g.data)), gradients)))
        if norm == inf:  # squares of float32 reach their limit at 1.8e19, long before the values do
            norm = sqrt(sum(float(np.square(g.data, dtype=np.float64).sum()) for g in gradients))
        if norm <= max_norm or max_norm == inf:
            return norm
        _by_all_threads(lambda g: _scale(g, max_norm / norm), gradients)
    return norm


def _by_all_threads(function: Callable[[Tensor], T], gradients: list[Tensor]) -> list[T]:
    """What it returns for each gradient, in their order: a sum of these has the same bits for any number of threads."""
    sizes = [g.size for g in gradients]
    threads = min(parallel.thread_count(), sum(sizes) // WORTH_A_THREAD)

    def of_share(own: Sequence[Tensor]) -> list[T]:
        return [function(g) for g in own]

    tasks = [partial(of_share, own) for own in parallel.shares(gradients, sizes, max(1, threads))]
    return [result for results in parallel.run(tasks) for result in results]


def _clip_on_gpu(gradients: list[Tensor], max_norm: float) -> Any:
    with on_device_of(gradients[0].data):
        squares = [_sum_of_squares(g.data) for g in gradients]
        namespace = xp(squares[0])
        norm = namespace.sqrt(sum(squares[1:], start=squares[0]))
        if max_norm == inf:
            return norm
        # At most 1, and exactly 1 within the bound. No branch on the norm, which the host does not know yet.
        coefficient = max_norm / namespace.maximum(norm, max_norm)
        for g in gradients:
            _scale(g, coefficient)
    return norm


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Limit each element of the gradients of `parameters`, in place, to [−clip_value, clip_value].

    Raises:
        ValueError: `clip_value` is not above 0.
    """
    clip_value = number(clip_value, "clip_value", "clip_grad_value_")
    if not clip_value > 0:
        raise ValueError(f"clip_grad_value_: clip_value must be above 0, got {clip_value!r}")
    for g in _gradients(parameters):
        array = g.data
        g.bump_tick()
        with on_device_of(array):
            xp(array).clip(array, -clip_value, clip_value, out=array)


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    tensors = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in tensors if p.grad is not None]


def _sum_of_squares(array: Any) -> Any:
    flat = array.reshape(-1)
    if flat.dtype == np.float16:  # whose squares overflow at 256
        flat = flat.astype(np.float32)
    return flat.dot(flat)


def _scale(g: Tensor, coefficient: Any) -> None:
    array = g.data
    g.bump_tick()
    array *= coefficient
