"""Saved values that change between forward and backward, unnoticed by the tape: a wrong gradient without an error.

The tape sees that a tensor is changed in place, but not who writes into a raw array. Here what a node saves has a
checksum.
"""

from __future__ import annotations

import weakref
import zlib
from typing import Any

from minigrad.device import is_array, to_numpy
from minigrad.engine.node import Array, Node
from minigrad.inspect.table import shape_text


class SavedValues:
    """The checksums of the operands and the output that each node has saved. To take one synchronises."""

    def __init__(self) -> None:
        self._checksums: weakref.WeakKeyDictionary[Node, list[int]] = weakref.WeakKeyDictionary()

    def remember(self, node: Node) -> None:
        """Take the checksums of what `node` has saved, in the forward."""
        self._checksums[node] = [checksum(array) for _, array in saved_arrays(node)]

    def changed(self, node: Node) -> str | None:
        """The text of the error if a value has changed since then; None if none has, or the node is not known."""
        for (name, array), before in zip(saved_arrays(node), self._checksums.get(node, ()), strict=False):
            if checksum(array) != before:
                return (f"{node.primitive.name}: {name}, of shape {shape_text(array.shape)}, has changed since the "
                        "forward, unnoticed by the tape, and the backward pass needs it as it was; change a copy, or "
                        "give a raw array as Tensor(array), which copies it")
        return None


def checksum(array: Array) -> int:
    """A number that changes with the values of an array."""
    return zlib.crc32(to_numpy(array).tobytes())


def saved_arrays(node: Node) -> list[tuple[str, Array]]:
    """The operands and the output that `node` has saved, and what they are called in an error.

    Of a checkpoint, which is computed again, they are the arrays among its arguments.
    """
    if node.primitive.recomputes:
        segment = node.saved[0]
        return [("an argument", array) for array in arrays_in([*segment.args, *segment.kwargs.values()])]
    return [("the output" if kind == "out" else f"the operand {name!r}", array)
            for (kind, _), name, value in zip(node.plan.keep, names_of_saved(node), node.saved, strict=True)
            if kind in ("value", "out") for array in arrays_in(value)]


def names_of_saved(node: Node) -> list[str]:
    """What each saved value of `node` is: the name of an operand, "out", "shape" and the like."""
    parameters = node.primitive.parameters
    return [parameters[position] if kind == "value" else kind for kind, position in node.plan.keep]


def arrays_in(value: Any) -> list[Array]:
    """The raw arrays in an argument: itself, or its parts."""
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in arrays_in(part)]
    return [value] if is_array(value) else []
