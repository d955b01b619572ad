"""Anomaly detection: the operation, or the gradient rule, that first makes a NaN or an infinity.

Forward: an operation is at fault if its output has a NaN and none of its arguments has one; or if it has an infinity
and no argument has one. So a mask of -inf may be given (`where`, `masked_fill`, an added constant) and pass through
whatever follows, while ``log(0)``, an overflow or ``inf - inf`` is caught where it happens. Backward: a rule is at
fault if the gradient that it was given is finite and the one that it returns is not.

Arrays that changed between forward and backward are found by checksums: the tape sees that a tensor is changed in
place, but not who writes into a raw array, and the gradient would be wrong without an error.
"""

from __future__ import annotations

import contextlib
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigrad.device import is_array, on_device_of, to_numpy, xp
from minigrad.engine.interpreters import Operands, interpreting
from minigrad.engine.node import Array, Node, TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.inspect.lines import Line, current_line
from minigrad.inspect.modules import ModuleWatcher
from minigrad.inspect.table import shape_text


class AnomalyError(FloatingPointError):
    """A NaN or an infinity appeared; the message says where, and what went in."""


def _parts(value: Any) -> list[Any]:
    """What an argument is made of: itself, or its parts; tensors as arrays."""
    if isinstance(value, (tuple, list)):
        return [part for one in value for part in _parts(one)]
    return [value._data if isinstance(value, TensorBase) else value]


def _is_floating(value: Any) -> bool:
    return value.dtype.kind == "f" if is_array(value) else isinstance(value, (float, np.floating))


def holds(value: Any, kind: str) -> bool:
    """Whether there is a NaN (`kind` "nan") or an infinity ("inf") in a floating array or number. Synchronises."""
    namespace = xp(value)
    with on_device_of(value):
        return bool((namespace.isnan if kind == "nan" else namespace.isinf)(value).any())


def is_finite(array: Array) -> bool:
    """Whether all of a floating array is finite. Synchronises."""
    with on_device_of(array):
        return bool(xp(array).isfinite(array).all())


class _Place(NamedTuple):
    """Where an operation ran: the line of the program, and the path of the module."""

    line: Line | None
    module: str

    def describe(self) -> str:
        if self.line is None:
            return "no line of a program outside minigrad ran it"
        inner = "" if self.line.inner is None else f"\nand from there by {self.line.inner.describe()}"
        return f"it was run by {self.line.describe()}{inner}" + (f"\nin {self.module}" if self.module else "")


class _Detector(ModuleWatcher):
    """Looks at everything that is computed, and remembers which line made each node."""

    buffers = False  # in a sum, a bad value of one gradient looks like one of the next

    def __init__(self) -> None:
        super().__init__()
        self._places: weakref.WeakKeyDictionary[Node, _Place] = weakref.WeakKeyDictionary()
        self._checksums: weakref.WeakKeyDictionary[Node, list[int]] = weakref.WeakKeyDictionary()

    def operation(self, op: Primitive, operands: Operands, proceed: Callable[[Operands], Any]) -> Any:
        output = proceed(operands)
        if output is None:  # of a checkpoint that has nothing to be computed again
            return None
        place = _Place(current_line(), self.calls.path)
        if output._node is not None:
            self._places[output._node] = place
            self._checksums[output._node] = [_checksum(array) for _, array in _saved_arrays(output._node)]
        if not op.recomputes:
            self._check_output(op, operands.args, output._data, place)
        elif output._node is not None:  # what runs in it has been checked
            self.calls.keep(output._node)
        return output

    def rules(self, node: Node, g: Array | TensorBase, proceed: Callable[[Any], list[Any]]) -> list[Any]:
        for (name, array), before in zip(_saved_arrays(node), self._checksums.get(node, ()), strict=False):
            if _checksum(array) != before:
                raise RuntimeError(
                    f"{node.primitive.name}: {name}, of shape {shape_text(array.shape)}, has changed since the "
                    "forward, unnoticed by the tape, and the backward pass needs it as it was; change a copy, or give "
                    f"a raw array as Tensor(array), which copies it\n    {self._places[node].describe()}")
        with self.calls.inside(node):
            gradients = proceed(g)
        if not node.primitive.recomputes and is_finite(_raw(g)):
            for name, gradient in zip(node.plan.names, gradients, strict=True):
                if gradient is not None:
                    self._check_gradient(node, name, _raw(gradient))
        return gradients

    def _check_output(self, op: Primitive, args: Sequence[Any], data: Array, place: _Place) -> None:
        if data.dtype.kind != "f" or is_finite(data):
            return
        operands = [part for part in _parts(args) if _is_floating(part)]
        for kind in ("nan", "inf"):
            if holds(data, kind) and not any(holds(operand, kind) for operand in operands):
                index, found = _first(data, kind)
                named = dict(zip(op.parameters, args, strict=True))
                raise _error(f"{op.name}: {_a(kind)} in its output, and none in what it was given", found,
                             place.describe(), *_operands(named, index, data.shape))

    def _check_gradient(self, node: Node, name: str, gradient: Array) -> None:
        if is_finite(gradient):
            return
        kind = "nan" if holds(gradient, "nan") else "inf"
        place = self._places.get(node)
        made = place.describe() if place is not None else (
            "the operation ran outside of detect_anomaly(); have the forward inside, too, to see its line")
        saved = dict(zip(_names_of_saved(node), node.saved, strict=True))
        raise _error(f"{node.primitive.name}: its gradient rule for {name!r} made {_a(kind)} of a finite gradient",
                     _first(gradient, kind)[1], made, *_operands(saved))


def _saved_arrays(node: Node) -> list[tuple[str, Array]]:
    """The operands and the output that `node` has saved, and what they are called in an error.

    Of a checkpoint, which is computed again, they are the arrays among its arguments.
    """
    if node.primitive.recomputes:
        segment = node.saved[0]
        given = [value for value in (*segment.args, *segment.kwargs.values()) if not isinstance(value, TensorBase)]
        return [("an argument", part) for part in _parts(given) if is_array(part)]
    return [("the output" if kind == "out" else f"the operand {name!r}", part)
            for (kind, _), name, value in zip(node.plan.keep, _names_of_saved(node), node.saved, strict=True)
            if kind in ("value", "out") for part in _parts(value) if is_array(part)]


def _names_of_saved(node: Node) -> list[str]:
    """What each saved value of `node` is: the name of an operand, "out", "shape" and the like."""
    parameters = node.primitive.parameters
    return [parameters[position] if kind == "value" else kind for kind, position in node.plan.keep]


def _checksum(array: Array) -> int:
    return zlib.crc32(to_numpy(array).tobytes())


def _raw(gradient: Array | TensorBase) -> Array:
    return gradient._data if isinstance(gradient, TensorBase) else gradient


def _a(kind: str) -> str:
    return "a NaN" if kind == "nan" else "an infinity"


def _first(data: Array, kind: str) -> tuple[tuple[int, ...], str]:
    """The index of the first bad element; and in words, with its value, and how many there are of how many."""
    host = to_numpy(data)
    bad = np.isnan(host) if kind == "nan" else np.isinf(host)
    index = tuple(int(i) for i in np.unravel_index(int(bad.argmax()), bad.shape))
    return index, (f"first at index {index} of shape {shape_text(host.shape)}: {float(host[index])} "
                   f"({int(bad.sum())} of {bad.size})")


def _error(*parts: str) -> AnomalyError:
    return AnomalyError("\n".join(parts).replace("\n", "\n    "))


def _operands(named: dict[str, Any], index: tuple[int, ...] | None = None,
              shape: tuple[int, ...] = ()) -> Iterator[str]:
    """A line for each argument: its dtype, shape and range, and its value at `index` if it broadcasts to `shape`."""
    for name, value in named.items():
        for part in _parts(value):
            if isinstance(part, (int, float)):
                yield f"{name}: {part}"
            if not is_array(part):
                continue
            host = to_numpy(part)
            text = f"{name}: {host.dtype} {shape_text(host.shape)}"
            finite = host[np.isfinite(host)] if host.dtype.kind == "f" else host
            if finite.size and host.dtype.kind != "b":
                text += f", from {finite.min()} to {finite.max()}"
            if finite.size < host.size:
                text += f", and {np.isnan(host).sum()} NaN and {np.isinf(host).sum()} infinite"
            with contextlib.suppress(ValueError):
                text += f"; there {np.broadcast_to(host, shape)[index]}" if index is not None and host.size else ""
            yield text


@contextlib.contextmanager
def detect_anomaly() -> Iterator[None]:
    """``with detect_anomaly(): …`` stops at the first NaN or infinity that a computation makes, with `AnomalyError`.

    A RuntimeError names the operation, in the backward pass, if what it saved has changed without the tape's notice: a
    raw array that was an operand, or the ``.data`` of a tensor, was written to. The gradient would be wrong.

    Local to the current thread or task. Every value is looked at, which takes about as long again as the computation,
    and on a GPU waits for it after each operation: for debugging alone.
    """
    with interpreting(_Detector()):
        yield
