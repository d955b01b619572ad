"""Checking gradients against finite differences, to first order (`gradcheck`) and to second (`gradgradcheck`).

The derivative of f along the i-th element of an input is compared with the central difference

    (f(x + eps·eᵢ) - f(x - eps·eᵢ)) / 2eps,

whose error in float64 is about 1e-10 for values near 1. Outputs with many elements are projected: with weights v,
drawn at random from a fixed seed, one backward pass gives vᵀJ, and the differences of all outputs are weighted by the
same v. An error in any entry of the Jacobian J moves some entry of vᵀJ. There are two projections, by two passes
through one graph, so that a rule which spoils what the graph has saved is found by the second.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minigrad import random
from minigrad.device import on_device_of, to_device, to_numpy
from minigrad.device.local import enable_grad
from minigrad.engine.node import TensorBase
from minigrad.tensor import Tensor
from minigrad.tensor.gradients import grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Host = np.ndarray[Any, Any]

PROJECTIONS = 2
SEED = 20170612  # of the weights v


class GradcheckError(AssertionError):
    """A gradient does not agree with finite differences, or the function cannot be checked by them."""


def gradcheck(function: Callable[..., Any], inputs: Tensor | Sequence[Tensor], eps: float = 1e-6, atol: float = 1e-7,
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
    checked = _check_inputs(inputs, "gradcheck")
    with enable_grad():
        _compare(function, function, checked, _names(function, len(checked)), "gradcheck", eps, atol, rtol)
    return True


def gradgradcheck(function: Callable[..., Any], inputs: Tensor | Sequence[Tensor], eps: float = 1e-6,
                  atol: float = 1e-7, rtol: float = 1e-5) -> bool:
    """Check the second derivatives of ``function(*inputs)``: that the gradient, recorded, has the right gradient.

    The function that is checked maps the inputs and a gradient ``g`` of the output to the gradients of the inputs;
    it is differentiated with respect to both, through ``grad(..., create_graph=True)``, and compared with differences
    of the ordinary gradient. Run `gradcheck` too: it says whether that gradient is right.

    Arguments (`eps`, `atol`, `rtol` among them), result and errors are those of `gradcheck`; in messages ``g0`` is the
    gradient of output 0.
    """
    checked = _check_inputs(inputs, "gradgradcheck")
    with enable_grad():
        outputs = _outputs(_evaluate(function, checked), "gradgradcheck")
        recorded = [i for i, output in enumerate(outputs) if output.requires_grad]
        draw = np.random.default_rng(SEED + 1)
        weights = [Tensor(draw.normal(size=outputs[i].shape), device=outputs[i].device, requires_grad=True)
                   for i in recorded]
        names = (*_names(function, len(checked)), *(f"g{i}" for i in recorded))

        def gradients(*everything: Tensor, create_graph: bool) -> list[Any]:
            xs, starts = everything[:len(checked)], everything[len(checked):]
            results = _outputs(function(*xs), "gradgradcheck")
            found = grad([results[i] for i in recorded], xs, starts, create_graph=create_graph, allow_unused=True)
            return [Tensor(np.zeros(x.shape), device=x.device) if gradient is None else gradient
                    for x, gradient in zip(xs, found, strict=True)]

        def ordinary(*everything: Tensor) -> list[Any]:
            return gradients(*everything, create_graph=False)

        def differentiable(*everything: Tensor) -> list[Any]:
            return gradients(*everything, create_graph=True)

        if recorded:  # otherwise every gradient is zero, and so is every second derivative
            _compare(ordinary, differentiable, [*checked, *weights], names, "gradgradcheck", eps, atol, rtol)
    return True


# --------------------------------------------------------------------------- what is given


def _check_inputs(inputs: Tensor | Sequence[Tensor], operation: str) -> list[Tensor]:
    tensors = [inputs] if isinstance(inputs, TensorBase) else list(inputs)
    if not tensors:
        raise ValueError(f"{operation}: needs at least one input")
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{operation}: input {i} is a {type(tensor).__name__}, not a Tensor")
        if tensor.dtype != np.float64:
            raise TypeError(f"{operation}: input {i} is {tensor.dtype}; finite differences need float64: "
                            "make it with dtype=np.float64")
        if not tensor.requires_grad:
            raise ValueError(f"{operation}: input {i} does not require a gradient; make it with requires_grad=True, or "
                             "let the function close over it")
        if not np.isfinite(to_numpy(tensor.data)).all():
            raise ValueError(f"{operation}: input {i} has values that are not finite, where there are no differences")
    return tensors


def _names(function: Callable[..., Any], count: int) -> tuple[str, ...]:
    """What to call the inputs in messages: by the function's own parameters, where it has as many."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some callables have no signature
        parameters = []
    if len(parameters) < count or any(p.kind is p.VAR_POSITIONAL for p in parameters[:count]):
        return ("",) * count
    return tuple(p.name for p in parameters[:count])


def _outputs(result: Any, operation: str) -> list[Tensor]:
    """The floating tensors among what the function returned."""
    outputs = [result] if isinstance(result, TensorBase) else list(result) if isinstance(result, (tuple, list)) else []
    floating = [output for output in outputs if isinstance(output, Tensor) and output.dtype.kind == "f"]
    if not floating:
        raise ValueError(f"{operation}: the function must return a floating tensor, or a sequence with some; "
                         f"it returned a {type(result).__name__}")
    return floating


# --------------------------------------------------------------------------- the comparison


def _evaluate(function: Callable[..., Any], inputs: Sequence[Tensor]) -> Any:
    with random.fork():
        return function(*inputs)


def _values(function: Callable[..., Any], inputs: Sequence[Tensor], operation: str) -> list[Host]:
    return [to_numpy(output.data) for output in _outputs(_evaluate(function, inputs), operation)]


@contextlib.contextmanager
def _holding(tensor: Tensor, values: Host) -> Iterator[None]:
    """Within the block `tensor` has these values; its own array is not written to."""
    own = tensor._data
    tensor._data = to_device(values, tensor.device)
    try:
        yield
    finally:
        tensor._data = own


def _compare(function: Callable[..., Any], differentiable: Callable[..., Any], inputs: list[Tensor],
             names: Sequence[str], operation: str, eps: float, atol: float, rtol: float) -> None:
    """Hold the gradients of `differentiable` to the differences of `function`, which has the same values."""
    given = [to_numpy(tensor.data).copy() for tensor in inputs]
    base = _values(function, inputs, operation)
    _hold_unwritten(inputs, given, f"{operation}: the function wrote")
    again = _values(function, inputs, operation)
    if not all(np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True) for a, b in zip(base, again, strict=True)):
        raise GradcheckError(f"{operation}: the function gives different results for the same inputs; randomness must "
                             "come from minigrad.random, which is restored for each evaluation")
    draw = np.random.default_rng(SEED)
    projections = [[np.asarray(draw.normal(size=values.shape)) for values in base] for _ in range(PROJECTIONS)]
    analytic, op = _gradients(differentiable, inputs, projections, operation)
    for i, tensor in enumerate(inputs):
        numeric = _differences(function, inputs, i, projections, operation, eps)
        name = f"input {i}" + (f" ({names[i]!r})" if names[i] else "")
        for found, expected in zip(analytic, numeric, strict=True):
            _hold(found[i], expected, f"{operation}: {name} of shape {tensor.shape}", op, atol, rtol)


def _gradients(function: Callable[..., Any], inputs: list[Tensor], projections: list[list[Host]],
               operation: str) -> tuple[list[list[Host]], str]:
    """vᵀJ for each projection v and each input, by a pass through one graph each; and the op that made the output."""
    before = [to_numpy(tensor.data).copy() for tensor in inputs]
    outputs = _outputs(_evaluate(function, inputs), operation)
    recorded = [i for i, output in enumerate(outputs) if output.requires_grad]
    nodes = [output._node for output in outputs]
    op = ", ".join(dict.fromkeys(node.primitive.name for node in nodes if node is not None))
    found = []
    for weights in projections:
        starts = [Tensor(weights[i], dtype=outputs[i].dtype, device=outputs[i].device) for i in recorded]
        gradients: Sequence[Any] = [None] * len(inputs)
        if recorded:
            gradients = grad([outputs[i] for i in recorded], inputs, starts, retain_graph=True, allow_unused=True)
        found.append([np.zeros(tensor.shape) if gradient is None else to_numpy(gradient.data)
                      for tensor, gradient in zip(inputs, gradients, strict=True)])
        for i, start in zip(recorded, starts, strict=True):
            if not np.array_equal(to_numpy(start.data), weights[i].astype(start.dtype)):
                raise GradcheckError(f"{operation}: the backward pass wrote to the gradient it was given [{op}]")
    _hold_unwritten(inputs, before, f"{operation}: the backward pass wrote", f" [{op}]")
    return found, op


def _hold_unwritten(inputs: list[Tensor], before: list[Host], who: str, op: str = "") -> None:
    """GradcheckError if an input has not the values of `before`; it gets them back."""
    for i, (tensor, values) in enumerate(zip(inputs, before, strict=True)):
        if not np.array_equal(to_numpy(tensor.data), values):
            with on_device_of(tensor.data):
                tensor.data[...] = to_device(values, tensor.device)
            raise GradcheckError(f"{who} to input {i}{op}; it must write to arrays of its own")


def _differences(function: Callable[..., Any], inputs: list[Tensor], position: int, projections: list[list[Host]],
                 operation: str, eps: float) -> list[Host]:
    """The central differences of the outputs along each element of one input, weighted by each projection."""
    values = to_numpy(inputs[position].data)
    numeric = [np.zeros(values.shape) for _ in projections]
    for index in np.ndindex(values.shape):
        above, below = values.copy(), values.copy()
        above[index] += eps
        below[index] -= eps
        with _holding(inputs[position], above):
            plus = _values(function, inputs, operation)
        with _holding(inputs[position], below):
            minus = _values(function, inputs, operation)
        step = above[index] - below[index]  # not quite 2·eps: x ± eps is rounded
        for weights, result in zip(projections, numeric, strict=True):
            for v, p, m in zip(weights, plus, minus, strict=True):
                moved = p != m  # an output that stays infinite has no difference
                result[index] += (v[moved] * (p[moved] - m[moved])).sum() / step
    return numeric


def _hold(gradient: Host, difference: Host, where: str, op: str, atol: float, rtol: float) -> None:
    """GradcheckError, for the worst element, unless the two agree."""
    error = np.abs(gradient - difference)
    wrong = ~(error <= atol + rtol * np.abs(difference))  # NaN is wrong too
    if wrong.any():
        index = np.unravel_index(int(np.argmax(np.where(wrong, np.nan_to_num(error, nan=np.inf), -1))), error.shape)
        found, expected = float(gradient[index]), float(difference[index])
        ratio = f"ratio {found / expected:.9g}" if expected else "no ratio"
        place = tuple(int(i) for i in index)
        raise GradcheckError(f"{where}, index {place}: the gradient is {found:.12g}, finite differences give "
                             f"{expected:.12g} ({ratio}); {int(wrong.sum())} of {wrong.size} elements are wrong"
                             + (f" [output of {op}]" if op else ""))
