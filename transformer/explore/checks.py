"""Gradients compared with finite differences of the whole model's loss, tensor by tensor.

A tensor T of the forward is moved along a direction, and everything after it is computed again:

    ⟨dT, direction⟩   must be   (L(T + h·direction) − L(T − h·direction)) / 2h

The right side uses no gradient rule. Symbols are those of transformer/explore/traced.py; "Xq", "Xk" and "Xv" are the
paths on which an attention reads X, or M, each moved alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from minigrad import Tensor, nn, no_grad, ops, random
from minigrad import functional as F
from minigrad.device import asarray_on, on_device_of, to_numpy

from transformer.explore.calls import Calls
from transformer.explore.traced import INPUTS, PER_HEAD, SHARED, AttentionTrace
from transformer.model import FeedForward

Loss = Callable[[], Any]  # computes the loss of a trace's block again, from the start: a scalar Tensor
Host = np.ndarray[Any, Any]

DIRECTIONS = 2
PATHS = dict(zip(("Xq", "Xk", "Xv"), INPUTS, strict=True))
TAPPED = PATHS | PER_HEAD | SHARED


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


def measure(trace: Calls, name: str, loss: Loss, seed: int = 0) -> dict[str, list[Check]]:
    """Compare the gradient of every tensor, weight and bias of an attention with differences along random directions.

    Args:
        trace: a trace, after the backward.
        name: the attention.
        loss: computes the loss of the trace's block again. Parameters are moved meanwhile and put back: no other thread
            may use the model.
        seed: the seed of the directions. Tensors of one shape share them, so that derivatives along paths add up.

    Returns:
        For each symbol, a check for each of the `DIRECTIONS` directions.
    """
    attention, found = trace[name], dict[str, list[Check]]()
    with _held_relus(trace.model, lambda: replay(trace, loss)) as now:
        for symbol, place in _places(attention).items():
            tensor = attention.value(place) if isinstance(place, str) else place
            gradient = to_numpy((attention.gradient(place) if isinstance(place, str) else place.grad)._data)
            size, random_numbers = _size(tensor), np.random.default_rng(seed)
            # The error of a central difference is of order h² and its rounding of order ε/h: h near the cube root of ε.
            step = 2 * float(np.finfo(tensor.dtype).eps) ** (1 / 3) * size
            found[symbol] = []
            for _ in range(DIRECTIONS):
                direction = random_numbers.standard_normal(tensor.shape)
                moved = Tensor(asarray_on(tensor.device, direction, tensor.dtype))
                numeric = (trace.finite_difference(loss, name, place, moved, step) if isinstance(place, str) else
                           _difference(trace, loss, place, moved, step))
                found[symbol].append(_check(float((gradient * direction).sum()), numeric, now, size))
    for symbol, (tap, paths) in _sums(attention).items():  # such an input moves on all its paths at once
        size = _size(attention.value(tap))
        by_direction = zip(*(found[path] for path in paths), strict=True)
        found[symbol] = [_check(sum(check.analytic for check in checks), sum(check.numeric for check in checks), now,
                                size) for checks in by_direction]
    return found


def replay(trace: Calls, loss: Loss) -> float:
    """The value of the loss, with the dropout masks of the trace's block."""
    with random.fork(), no_grad():
        random.set_state(trace._state)
        return float(loss())


def _check(analytic: float, numeric: float, loss: float, size: float) -> Check:
    return Check(analytic, numeric, relative_error(analytic, numeric, 1e-3 * abs(loss) / size))


def _places(attention: AttentionTrace) -> dict[str, str | nn.Parameter]:
    """The tensors that a check can move, by symbol: each a tap or a parameter.

    Without a mask S̄ is S, without dropout A′ is A, and those are measured.
    """
    places: dict[str, str | nn.Parameter] = {
        symbol: tap for symbol, tap in TAPPED.items() if tap in attention and attention.taken(tap) == tap}
    for letter, linear in attention.projections.items():
        for kind, parameter in (("W", linear.weight), ("b", linear.bias)):
            if parameter is not None and parameter.grad is not None:
                places[f"{kind}{letter}"] = parameter
    return places


def _sums(attention: AttentionTrace) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The inputs that are read on several paths: the tap of one, and the symbols of all."""
    if not all(tap in attention for tap in INPUTS):
        return {}
    memory = ("Xk", "Xv") if attention._one_memory else ("Xk",)
    if attention.is_self:
        return {"X": (INPUTS[0], ("Xq", *memory))}
    return {"X": (INPUTS[0], ("Xq",)), "M": (INPUTS[1], memory)}


def _difference(trace: Calls, loss: Loss, parameter: nn.Parameter, direction: Tensor, step: float) -> float:
    """The derivative of the loss as a parameter moves along `direction`."""
    held = parameter.data
    try:
        losses = []
        for sign in (1, -1):
            with on_device_of(held):
                parameter.data = held + sign * step * direction._data
            losses.append(replay(trace, loss))
    finally:
        parameter.data = held
    return (losses[0] - losses[1]) / (2 * step)


@contextmanager
def _held_relus(model: nn.Module, loss: Callable[[], float]) -> Iterator[float]:
    """The loss, and a block in which every relu keeps the pattern of active units that it had for it.

    A step across the kink of a relu would measure the mean of two slopes, but the gradient is one of them. In a large
    model, some unit is nearly always within a step of its kink.
    """
    layers = [module for module in model.modules() if isinstance(module, FeedForward) and module.activation is F.relu]
    held = [_HeldRelu() for _ in layers]
    try:
        for layer, relu in zip(layers, held, strict=True):
            layer.activation = relu
        value = loss()
        for relu in held:
            relu.recording = False
        yield value
    finally:
        for layer in layers:
            layer.activation = F.relu


class _HeldRelu:
    """A relu that records which units are active, and then applies that pattern, so that it is linear in its input.

    The first evaluation of the loss records one pattern for each call; later evaluations repeat them in order.
    """

    def __init__(self) -> None:
        self.patterns: list[Any] = []
        self.recording = True
        self.calls = 0

    def __call__(self, x: Tensor) -> Tensor:
        if self.recording:
            self.patterns.append(x._data > 0)
            return F.relu(x)
        self.calls += 1
        return ops.where(self.patterns[(self.calls - 1) % len(self.patterns)], x, 0.0)


def _size(tensor: Tensor) -> float:
    """The root mean square of the finite entries (masked scores are −∞); 1 for a tensor of zeros."""
    host = to_numpy(tensor._data)
    finite = host[np.isfinite(host)].astype(np.float64)
    return float(np.sqrt(np.mean(finite * finite))) or 1.0 if finite.size else 1.0
