"""Gradients compared with finite differences of the whole model's loss, tensor by tensor.

A tensor T of the forward is moved along a direction, and everything after it is computed again:

    ⟨dT, direction⟩   must be   (L(T + h·direction) − L(T − h·direction)) / 2h

The right side uses no gradient rule. Symbols are those of transformer/explore/traced.py; "Xq", "Xk" and "Xv" are the
paths on which an attention reads X, or M, each moved alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from minigrad import Tensor, nn, ops
from minigrad import functional as F
from minigrad.device import asarray_on, on_device_of, to_numpy

from transformer.explore.calls import Calls
from transformer.explore.traced import INPUTS, PER_HEAD, SHARED
from transformer.model import FeedForward

Loss = Callable[[], Any]  # computes the loss of a trace's block again, from the start: a scalar Tensor

DIRECTIONS = 2
TAPPED = dict(zip(("Xq", "Xk", "Xv"), INPUTS, strict=True)) | PER_HEAD | SHARED


class Check(NamedTuple):
    """The derivative of the loss along a direction: by the gradient, by a difference, and their relative error."""

    analytic: float
    numeric: float
    error: float


def relative_error(analytic: float, numeric: float, smallest: float) -> float:
    """``|analytic − numeric| / max(|analytic|, |numeric|, smallest)``.

    If a derivative is 0, as along a key's bias, the difference is rounding alone, and its ratio to 0 means nothing. An
    error is therefore relative to at least `smallest`. In this module that is the derivative of a tensor whose move by
    its own size changes the loss by a thousandth; rounding is less than a millionth of that.
    """
    largest = max(abs(analytic), abs(numeric), smallest)
    return abs(analytic - numeric) / largest if largest else 0.0


def measure(trace: Calls, name: str, loss: Loss) -> dict[str, list[Check]]:
    """Compare the gradient of every tensor, weight and bias of an attention with differences along random directions.

    Args:
        trace: a trace, after the backward.
        name: the attention.
        loss: computes the loss of the trace's block again. Parameters are moved meanwhile and put back: no other thread
            may use the model.

    Returns:
        For each symbol, a check for each of the `DIRECTIONS` directions.
    """
    found = dict[str, list[Check]]()
    with _held_relus(trace.model, lambda: trace.replay(loss)) as now:
        for symbol, tensor, gradient, difference in _movable(trace, name, loss):
            size, random_numbers = _size(tensor), np.random.default_rng(0)
            # The error of a central difference is of order h² and its rounding of order ε/h: h near the cube root of ε.
            step = 2 * float(np.finfo(tensor.dtype).eps) ** (1 / 3) * size
            found[symbol] = []
            for _ in range(DIRECTIONS):
                direction = random_numbers.standard_normal(tensor.shape)
                numeric = difference(Tensor(asarray_on(tensor.device, direction, tensor.dtype)), step)
                analytic = float((gradient * direction).sum())
                error = relative_error(analytic, numeric, 1e-3 * abs(now) / size)
                found[symbol].append(Check(analytic, numeric, error))
    return found


def _movable(trace: Calls, name: str, loss: Loss) -> Iterator[tuple[str, Tensor, Any, Callable[..., float]]]:
    """What a check can move, by symbol: its value, its gradient, and the difference of the loss as it moves.

    Without a mask S̄ is S, without dropout A′ is A, and those are measured. X and M move on all their paths at once.
    """
    attention = trace[name]
    tapped = {symbol: (tap,) for symbol, tap in TAPPED.items() if attention.has_own(tap)}
    for symbol, taps in (tapped | attention.reads).items():
        gradient = sum(to_numpy(attention.gradient(tap)._data) for tap in taps)
        yield symbol, attention.value(taps[0]), gradient, partial(trace.finite_difference, loss, name, taps)
    for letter, linear in attention.projections.items():
        for kind, parameter in (("W", linear.weight), ("b", linear.bias)):
            if parameter is not None and parameter.grad is not None:
                gradient = to_numpy(parameter.grad._data)
                yield f"{kind}{letter}", parameter, gradient, partial(_difference, trace, loss, parameter)


def _difference(trace: Calls, loss: Loss, parameter: nn.Parameter, direction: Tensor, step: float) -> float:
    """The derivative of the loss as a parameter moves along `direction`."""
    held = parameter.data

    def loss_at(distance: float) -> float:
        with on_device_of(held):
            parameter.data = held + distance * direction._data
        return trace.replay(loss)

    try:
        return (loss_at(step) - loss_at(-step)) / (2 * step)
    finally:
        parameter.data = held


@contextmanager
def _held_relus(model: nn.Module, loss: Callable[[], float]) -> Iterator[float]:
    """The loss, and a block in which every relu keeps the pattern of active units that it had for it.

    A step across the kink of a relu would measure the mean of two slopes, but the gradient is one of them. In a large
    model, some unit is nearly always within a step of its kink. Each evaluation of the loss calls the relus in the same
    order.
    """
    layers = [module for module in model.modules() if isinstance(module, FeedForward) and module.activation is F.relu]
    patterns: list[Any] = []

    def replace(activation: Callable[[Tensor], Tensor]) -> None:
        for layer in layers:
            layer.activation = activation

    def recorded(x: Tensor) -> Tensor:
        patterns.append(x._data > 0)
        return F.relu(x)

    try:
        replace(recorded)
        value = loss()
        held = cycle(patterns)
        replace(lambda x: ops.where(next(held), x, 0.0))
        yield value
    finally:
        replace(F.relu)


def _size(tensor: Tensor) -> float:
    """The root mean square of the finite entries (masked scores are −∞); 1 for a tensor of zeros."""
    host = to_numpy(tensor._data)
    finite = host[np.isfinite(host)].astype(np.float64)
    return float(np.linalg.norm(finite)) / max(1, finite.size) ** 0.5 or 1.0
