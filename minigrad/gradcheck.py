"""Checking gradients against finite differences, to first order (`gradcheck`) and to second (`gradgradcheck`).

The derivative of f along the i-th element of an input is compared with the central difference

    (f(x + eps·eᵢ) - f(x - eps·eᵢ)) / 2eps,

whose error in float64 is about 1e-10 for values near 1. Outputs with many elements are projected: with weights v,
drawn at random from a fixed seed, one backward pass gives vᵀJ, and the differences of all outputs are weighted by the
same v. An error in any entry of the Jacobian J moves some entry of vᵀJ. There are two projections, by two passes
through one graph, so that a rule which spoils what the graph has saved is found by the second.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad import random
from minigrad.device import on_device_of, to_device, to_numpy
from minigrad.device.local import enable_grad
from minigrad.tensor import Tensor
from minigrad.tensor.gradients import grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Function = Callable[..., Any]

PROJECTIONS = 2
SEED = 20170612  # of the weights v


class GradcheckError(AssertionError):
    """A gradient does not agree with finite differences, or the function cannot be checked by them."""


def gradcheck(function: Function, inputs: Tensor | Sequence[Tensor], eps: float = 1e-6, atol: float = 1e-7,
              rtol: float = 1e-6) -> bool:
    """Check the gradient of ``function(*inputs)`` with respect to every element of `inputs`.

    Each evaluation starts from the same state of `minigrad.random`, so that dropout masks are frozen; the state
    outside does not change. The values of the inputs are exchanged while the check runs and put back afterwards, so
    that `function` may also reach them by other ways than its arguments, as a module reaches its parameters.

    Args:
        function: takes tensors; returns a tensor or a sequence of them, of which the floating ones are checked.
        inputs: float64 tensors that require gradients, of any shape, strides and device; no element on a kink.
        eps: half the distance between the two points of a difference.
        atol, rtol: the check passes if ``|gradient - difference| <= atol + rtol·|difference|`` everywhere.

    Returns:
        True.

    Raises:
        GradcheckError: a gradient is wrong (the message names the input, the index, both numbers and their ratio),
            the function is not deterministic, or it or its backward pass writes to what it was given.
        TypeError, ValueError: inputs that are not float64 tensors requiring gradients, or are not finite; no
            floating output.
    """
    with enable_grad():
        check = _Check(inputs, "gradcheck")
        check.compare(function, function, eps, atol, rtol)
    return True


def gradgradcheck(function: Function, inputs: Tensor | Sequence[Tensor], eps: float = 1e-6, atol: float = 1e-7,
                  rtol: float = 1e-5) -> bool:
    """Check the second derivatives of ``function(*inputs)``: that the gradient, recorded, has the right gradient.

    The function that is checked maps the inputs, and after them a gradient of each output, to the gradients of the
    inputs; it is differentiated with respect to both, through ``grad(..., create_graph=True)``, and compared with
    differences of the ordinary gradient. Run `gradcheck` too: it says whether that gradient is right.

    Arguments (`eps`, `atol`, `rtol` among them), result and errors are those of `gradcheck`.
    """
    with enable_grad():
        check = _Check(inputs, "gradgradcheck")
        outputs = check.outputs(function)
        recorded, count = [i for i, output in enumerate(outputs) if output.requires_grad], len(check.inputs)
        draw = np.random.default_rng(SEED + 1)
        check.inputs += [Tensor(draw.normal(size=outputs[i].shape), device=outputs[i].device, requires_grad=True)
                         for i in recorded]

        def gradients(*everything: Tensor, create_graph: bool) -> list[Any]:
            xs, starts = everything[:count], everything[count:]
            results = _floating(function(*xs), "gradgradcheck")
            found = grad([results[i] for i in recorded], xs, starts, create_graph=create_graph, allow_unused=True)
            return [Tensor(np.zeros(x.shape), device=x.device) if gradient is None else gradient
                    for x, gradient in zip(xs, found, strict=True)]

        if recorded:  # otherwise every gradient is zero, and so is every second derivative
            check.compare(functools.partial(gradients, create_graph=False),
                          functools.partial(gradients, create_graph=True), eps, atol, rtol)
    return True


def _floating(result: Any, name: str) -> list[Tensor]:
    """The floating tensors among what the function returned."""
    outputs = result if isinstance(result, (tuple, list)) else [result]
    floating = [output for output in outputs if isinstance(output, Tensor) and output.dtype.kind == "f"]
    if not floating:
        raise ValueError(f"{name}: the function must return a floating tensor, or a sequence with some; it returned a "
                         f"{type(result).__name__}")
    return floating


class _Check:
    """The inputs of a check, whose values it exchanges, and the name that its errors begin with."""

    def __init__(self, inputs: Tensor | Sequence[Tensor], name: str) -> None:
        self.name, self.inputs = name, [inputs] if isinstance(inputs, Tensor) else list(inputs)
        if not self.inputs:
            raise ValueError(f"{name}: needs at least one input")
        for i, tensor in enumerate(self.inputs):
            if not isinstance(tensor, Tensor) or tensor.dtype != np.float64:
                found = tensor.dtype if isinstance(tensor, Tensor) else f"a {type(tensor).__name__}"
                raise TypeError(f"{name}: input {i} is {found}; finite differences need tensors of float64")
            if not tensor.requires_grad:
                raise ValueError(f"{name}: input {i} does not require a gradient; make it with requires_grad=True, or "
                                 "let the function close over it")
            if not np.isfinite(to_numpy(tensor.data)).all():
                raise ValueError(f"{name}: input {i} has values that are not finite, where there are no differences")

    def outputs(self, function: Function) -> list[Tensor]:
        """The floating results of the function, from the same random numbers each time."""
        with random.fork():
            return _floating(function(*self.inputs), self.name)

    def values(self, function: Function) -> list[Any]:
        return [to_numpy(output.data) for output in self.outputs(function)]

    def compare(self, function: Function, differentiable: Function, eps: float, atol: float, rtol: float) -> None:
        """Hold the gradients of `differentiable` to the differences of `function`, which has the same values."""
        given = [to_numpy(tensor.data).copy() for tensor in self.inputs]
        base = self.values(function)
        self.unwritten(given, "the function")
        if not all(np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True)
                   for a, b in zip(base, self.values(function), strict=True)):
            raise GradcheckError(f"{self.name}: the function gives different results for the same inputs; randomness "
                                 "must come from minigrad.random, which is restored for each evaluation")
        draw = np.random.default_rng(SEED)
        projections = [[np.asarray(draw.normal(size=values.shape)) for values in base] for _ in range(PROJECTIONS)]
        analytic = self.gradients(differentiable, projections)
        self.unwritten(given, "the backward pass")
        for i, tensor in enumerate(self.inputs):
            for found, expected in zip(analytic, self.differences(function, i, projections, eps), strict=True):
                error = np.abs(found[i] - expected)
                wrong = ~(error <= atol + rtol * np.abs(expected))  # NaN is wrong too
                if wrong.any():
                    worst = int(np.argmax(np.where(wrong, np.nan_to_num(error, nan=np.inf), -1)))
                    index = tuple(map(int, np.unravel_index(worst, error.shape)))
                    one, other = float(found[i][index]), float(expected[index])
                    ratio = f"ratio {one / other:.9g}" if other else "no ratio"
                    raise GradcheckError(f"{self.name}: input {i} of shape {tensor.shape}, index {index}: the gradient "
                                         f"is {one:.12g}, finite differences give {other:.12g} ({ratio}); "
                                         f"{int(wrong.sum())} of {wrong.size} elements are wrong")

    def unwritten(self, given: list[Any], who: str) -> None:
        """GradcheckError if an input has no longer the values `given`; it gets them back."""
        for i, (tensor, values) in enumerate(zip(self.inputs, given, strict=True)):
            if not np.array_equal(to_numpy(tensor.data), values):
                with on_device_of(tensor.data):
                    tensor.data[...] = to_device(values, tensor.device)
                raise GradcheckError(f"{self.name}: {who} wrote to input {i}; it must write to arrays of its own")

    def gradients(self, function: Function, projections: list[list[Any]]) -> list[list[Any]]:
        """vᵀJ for each projection v and each input, by a pass through one graph each."""
        outputs = self.outputs(function)
        recorded = [i for i, output in enumerate(outputs) if output.requires_grad]
        found = []
        for weights in projections:
            starts = [Tensor(weights[i], dtype=outputs[i].dtype, device=outputs[i].device) for i in recorded]
            gradients = grad([outputs[i] for i in recorded], self.inputs, starts, retain_graph=True, allow_unused=True)
            found.append([np.zeros(tensor.shape) if gradient is None else to_numpy(gradient.data)
                          for tensor, gradient in zip(self.inputs, gradients, strict=True)])
            for i, start in zip(recorded, starts, strict=True):
                if not np.array_equal(to_numpy(start.data), weights[i].astype(start.dtype)):
                    raise GradcheckError(f"{self.name}: the backward pass wrote to the gradient it was given")
        return found

    def differences(self, function: Function, position: int, projections: list[list[Any]], eps: float) -> list[Any]:
        """The central differences of the outputs along each element of one input, weighted by each projection."""
        tensor = self.inputs[position]
        own, values = tensor._data, to_numpy(tensor.data)
        numeric = [np.zeros(values.shape) for _ in projections]
        try:
            for index in np.ndindex(values.shape):
                above, below = values.copy(), values.copy()
                above[index] += eps
                below[index] -= eps
                tensor._data = to_device(above, tensor.device)
                plus = self.values(function)
                tensor._data = to_device(below, tensor.device)
                minus = self.values(function)
                step = above[index] - below[index]  # not quite 2·eps: x ± eps is rounded
                for weights, result in zip(projections, numeric, strict=True):
                    for v, p, m in zip(weights, plus, minus, strict=True):
                        moved = p != m  # an output that stays infinite has no difference
                        result[index] += (v[moved] * (p[moved] - m[moved])).sum() / step
        finally:
            tensor._data = own
        return numeric
