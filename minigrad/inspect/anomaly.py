"""Anomaly detection: the operation, or the gradient rule, that first makes a NaN or an infinity.

Forward: an operation is at fault if its output has a NaN and none of its arguments has one; or if it has an infinity
and no argument has one. So a mask of -inf may be given (`where`, `masked_fill`, an added constant) and pass through
whatever follows, while ``log(0)``, an overflow or ``inf - inf`` is caught where it happens. Backward: so is a rule,
whose argument is the gradient of the output, and whose output is that of an input.

Arrays that changed between forward and backward are found by checksums: the tape sees that a tensor is changed in
place, but not who writes into a raw array, and the gradient would be wrong without an error.
"""

from __future__ import annotations

import contextlib
import itertools
import traceback
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from minigrad.device import is_array, to_numpy
from minigrad.engine.node import Node
from minigrad.engine.primitive import Primitive
from minigrad.engine.watch import watch
from minigrad.inspect.frames import Frame, FrameWatcher, arrays_in, input_names, leaves_in, saved_by
from minigrad.inspect.lines import current_lines


class AnomalyError(FloatingPointError):
    """A NaN or an infinity appeared; the message says where, and what went in."""


class _Detector(FrameWatcher):
    """Looks at everything that is computed, and remembers which line made each node."""

    buffers = False  # in a sum, a bad value of one gradient looks like one of the next

    def before(self, what: Any, given: Any) -> None:
        """The rules of a node are about to use what it has saved."""
        if isinstance(what, Node) and what in self.recorded:
            frame = self.recorded[what]
            for then, now in zip(frame.note[1], _checksums(what), strict=True):
                if now != then:
                    raise RuntimeError(
                        f"{what.primitive.name}: its saved {then[0]!r}, of shape {then[1]}, has changed since the "
                        "forward, unnoticed by the tape, and the backward pass needs it as it was; change a copy, or "
                        f"give a raw array as Tensor(array), which copies it{_place(frame)}")
        self.enter(what)

    def after(self, what: Any, given: Any, made: Any) -> None:
        """An operation has an output, or rules have returned gradients."""
        frame, node = self.leave(what, made)
        if isinstance(what, Primitive) and made is not None:
            frame.note = current_lines(), [] if node is None else _checksums(node)
            if not what.recomputes:  # what runs in a checkpoint has been looked at
                _look(f"{what.name}: {{}} in its output", made, given, frame, zip(what.parameters, given, strict=True))
        elif isinstance(what, Node) and made is not None:
            for name, gradient in zip(input_names(what), made, strict=True):
                _look(f"{what.primitive.name}: {{}} in its gradient for {name!r}", gradient, given,
                      self.recorded.get(what), saved_by(what))


def _look(problem: str, made: Any, given: Any, frame: Frame | None, named: Iterable[tuple[str, Any]]) -> None:
    """AnomalyError for a NaN, or an infinity, in what was made, if there is none in what was given.

    It has the first bad element, and the shape and the range of each operand.
    """
    for array, (bad, test) in itertools.product(_values(made), (("a NaN", np.isnan), ("an infinity", np.isinf))):
        if test(array).any() and not any(test(value).any() for value in _values(given)):
            index = tuple(map(int, np.argwhere(test(array))[0]))
            text = [f"{problem.format(bad)}, and none in what it was given",
                    f"first at index {index} of shape {array.shape}: {array[index]}{_place(frame)}"]
            for name, value in named:
                for operand in map(to_numpy, arrays_in(value)):
                    finite = operand[np.isfinite(operand)]
                    extent = f"from {finite.min()} to {finite.max()}" if finite.size else "nothing finite"
                    text.append(f"{name}: {operand.dtype} {operand.shape}, {extent}")
            raise AnomalyError("\n".join(text).replace("\n", "\n    "))


def _place(frame: Frame | None) -> str:
    """Where an operation ran, if that was within the block: the lines of the program, and the module."""
    if frame is None:
        return ""
    text = "".join(["\nit was run by\n", *traceback.format_list(frame.note[0])]).rstrip()
    return f"{text}\nin {frame.module}" if frame.module else text


def _values(value: Any) -> list[Any]:
    """The arrays and floating numbers among arguments, in host memory."""
    return [to_numpy(leaf) for leaf in leaves_in(value) if isinstance(leaf, (float, np.floating)) or is_array(leaf)]


def _checksums(node: Node) -> list[tuple[str, Any, int]]:
    return [(name, array.shape, zlib.crc32(to_numpy(array).tobytes())) for name, array in saved_by(node)]


@contextlib.contextmanager
def detect_anomaly() -> Iterator[None]:
    """``with detect_anomaly(): …`` stops at the first NaN or infinity that a computation makes, with `AnomalyError`.

    A RuntimeError names the operation, in the backward pass, if what it saved has changed without the tape's notice: a
    raw array that was an operand, or the ``.data`` of a tensor, was written to. The gradient would be wrong.

    Local to the current thread or task. Every value is looked at, which takes about as long again as the computation,
    and from a GPU is copied to the host after each operation: for debugging alone.
    """
    with watch(_Detector()):
        yield
