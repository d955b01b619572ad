"""The checker of a body: it computes what the definition does, and keeps what it declares."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigrad.device.local import Setting
from minigrad.engine.node import Saved
from minigrad.engine.primitive import body_kinds, only_definitions
from minigrad.kernels.bodies import FasterBody
from minigrad.tensor import Tensor

TOLERANCE = {"d": 1e-12, "f": 2e-5, "e": 2e-2}  # of the largest element of a result, by the character of its dtype


class BodyError(Exception):
    """A body that does not do what the definition does, or not what it declares."""


class BodyCheck(NamedTuple):
    """What `check_body` has found, for a body that holds.

    Attributes:
        value_error, gradient_error: the largest difference from the definition, relative to the largest element.
        fresh: whether the gradients were memory of their own, as far as addresses tell.
        kept, kept_by_definition: bytes that the backward pass keeps alive, operands included.
    """

    value_error: float
    gradient_error: float
    fresh: bool
    kept: int
    kept_by_definition: int


def check_body(body: FasterBody, *args: Any, gradient: Any = None, tolerance: float | None = None) -> BodyCheck:
    """Hold `body` to the definition of its operation, on arguments that suit it.

    It checks the value and the gradients, for all inputs at once and for each alone, that neither way writes to what it
    is given, that a second backward pass over the same node gives the same gradients, and, for a body that declares
    `fresh`, that no gradient shares memory with another, the gradient of the output, a saved value or an operand.

    Args:
        args: raw arrays and plain values, in the order of the operation's parameters. Floating inputs get gradients.
        gradient: of the output; random numbers if it is None.
        tolerance: of the differences, relative to the largest element; by default 1e-12 for float64, 2e-5 for float32.

    Returns:
        What was measured.

    Raises:
        ValueError: the body does not suit these arguments.
        BodyError: the body differs, and how.
    """
    primitive = body.primitive
    if not body.suits(*args):
        raise ValueError(f"{primitive.name}: the body of {body.forward.__module__} does not suit these arguments")
    places = [i for i, name in enumerate(primitive.parameters)
              if name in primitive.inputs and getattr(args[i], "dtype", np.dtype(int)).kind == "f"]
    before = [np.array(a, copy=True) if isinstance(a, np.ndarray) else a for a in args]
    value_error = gradient_error = 0.0
    fresh, kept, kept_by_definition = True, 0, 0
    for wanted in [places, *([i] for i in places if len(places) > 1)]:
        with only_definitions():
            expected, g, theirs = _run(body, args, wanted, gradient)
            start = g
            right = _gradients(theirs, g)
        with Setting(body_kinds, lambda kinds: kinds | {body.kind}), _alone(body):
            out, g, node = _run(body, args, wanted, start)
        if node is not None and node.plan not in body.plans.values():
            raise BodyError(f"{primitive.name}: another body ran")
        _require_unchanged(primitive.name, args, before)
        value_error = max(value_error, _difference(primitive.name, "the value", out, expected, tolerance))
        if node is None:
            continue
        g_before = g.copy()
        gradients = _gradients(node, g)
        _require_unchanged(primitive.name, args, before)
        if not np.array_equal(g, g_before, equal_nan=True):
            raise BodyError(f"{primitive.name}: a rule writes to the gradient of the output")
        for name, ours, other in zip(node.plan.names, gradients, right, strict=True):
            what = f"the gradient of {name}"
            gradient_error = max(gradient_error, _difference(primitive.name, what, ours, other, tolerance))
        shared = _shared(gradients, [g, *args, *_arrays(node.saved)])
        if shared and body.fresh:
            raise BodyError(f"{primitive.name}: the body declares `fresh`, but {shared}")
        fresh = fresh and not shared
        copies = [ours.copy() for ours in gradients]
        again = _gradients(node, g)
        if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(copies, again, strict=True)):
            raise BodyError(f"{primitive.name}: a second backward pass gives other gradients: a rule writes to what "
                            "is saved")
        kept, kept_by_definition = max(kept, _bytes(node)), max(kept_by_definition, _bytes(theirs))
    return BodyCheck(value_error, gradient_error, fresh, kept, kept_by_definition)


def _require_unchanged(name: str, args: Sequence[Any], before: Sequence[Any]) -> None:
    """BodyError unless the operands are what they were."""
    for argument, copy in zip(args, before, strict=True):
        floating = isinstance(argument, np.ndarray) and argument.dtype.kind == "f"
        if isinstance(argument, np.ndarray) and not np.array_equal(argument, copy, equal_nan=floating):
            raise BodyError(f"{name}: the body writes to an operand")


class _alone:
    """A block in which an operation has this body alone."""

    def __init__(self, body: FasterBody) -> None:
        self.primitive, self.bodies, self.body = body.primitive, body.primitive.bodies, body

    def __enter__(self) -> None:
        self.primitive.bodies = [self.body]

    def __exit__(self, *exception: object) -> None:
        self.primitive.bodies = self.bodies


def _run(body: FasterBody, args: Sequence[Any], wanted: Sequence[int], gradient: Any) -> tuple[Any, Any, Any]:
    """The output as an array, the gradient to start from, and the node, None if no gradient is wanted."""
    tensors = [_tensor(a, i in wanted) if name in body.primitive.inputs else a
               for i, (name, a) in enumerate(zip(body.primitive.parameters, args, strict=True))]
    out = body.primitive(*tensors)
    array = out._data
    if gradient is None:
        gradient = np.random.default_rng(7).standard_normal(array.shape).astype(array.dtype)
    return array, np.asarray(gradient, array.dtype), out._node


def _tensor(value: Any, requires_grad: bool) -> Any:
    """A tensor around an array, which is not copied; other values as they are."""
    if not isinstance(value, np.ndarray):
        return value
    tensor = Tensor(0.0)
    tensor._data, tensor._requires_grad = value, requires_grad
    return tensor


def _gradients(node: Any, g: Any) -> list[Any]:
    """What the rules of a node return for the inputs that want a gradient; those that add into a buffer, from zeros."""
    if node is None:
        return []
    plan = node.plan
    values = (g, plan.needs, *node.saved)
    if plan.joint:
        results = plan.calls[0].rule(*plan.calls[0].pick(values))
        return [np.asarray(results[i]) for i in plan.wanted]
    found = []
    for call, parent in zip(plan.calls, node.parents, strict=True):
        if call.adds:
            buffer = np.zeros(parent._data.shape, parent._data.dtype)
            call.rule(buffer, *call.pick(values))
            found.append(buffer)
        else:
            found.append(np.asarray(call.rule(*call.pick(values))))
    return found


def _difference(name: str, what: str, ours: Any, theirs: Any, tolerance: float | None) -> float:
    """The largest difference, relative to the largest element; BodyError if it is too large."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        raise BodyError(f"{name}: {what} is {ours.dtype}{ours.shape}, that of the definition "
                        f"{theirs.dtype}{theirs.shape}")
    finite = np.isfinite(theirs)
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True) or not np.isfinite(ours[finite]).all():
        raise BodyError(f"{name}: {what} is infinite or NaN in other places than that of the definition")
    difference = 0.0
    if finite.any():
        largest = max(1e-3, float(np.abs(theirs[finite]).max()))
        difference = float(np.abs(ours[finite] - theirs[finite]).max()) / largest
    allowed = TOLERANCE.get(ours.dtype.char, 0.0) if tolerance is None else tolerance
    if difference > allowed:
        raise BodyError(f"{name}: {what} differs from that of the definition by {difference:.1e} of the largest "
                        f"element, {allowed:.0e} allowed")
    return difference


def _shared(gradients: list[Any], others: list[Any]) -> str:
    """Which gradient shares memory with another one or with one of `others`, in words; "" for none."""
    for (i, one), (j, other) in itertools.combinations(enumerate(gradients), 2):
        if np.may_share_memory(one, other):
            return f"gradients {i} and {j} share memory"
    for i, one in enumerate(gradients):
        if any(isinstance(other, np.ndarray) and np.may_share_memory(one, other) for other in others):
            return f"gradient {i} shares memory with the gradient of the output, a saved value or an operand"
    return ""


def _arrays(saved: Any) -> Iterator[Any]:
    """The arrays among saved values."""
    for value in saved:
        if isinstance(value, Saved):
            yield from _arrays(vars(value).values())
        elif isinstance(value, tuple):
            yield from _arrays(value)
        elif isinstance(value, np.ndarray):
            yield value


def _bytes(node: Any) -> int:
    """The bytes of what a node keeps; what shares memory counts once."""
    bases = {id(base): base for a in _arrays(node.saved) for base in [a if a.base is None else a.base]}
    return sum(getattr(base, "nbytes", 0) for base in bases.values())
