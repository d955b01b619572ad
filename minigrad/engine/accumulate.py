"""Summing the gradients that arrive for one tensor, without ever writing to memory that somebody else may see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from minigrad.device import on_device_of, xp
from minigrad.engine.node import Array, Node, Saved, TensorBase, wrap


class Pending:
    """Gradients that have arrived but were not sent on yet, by the id of the node or leaf that they are for.

    An entry is ``[value, owned, target]``. A rule may return its argument, a view, or one array for two inputs, so a
    value is borrowed at first and never written to. The second arrival makes a sum that we own; later ones add into it.
    """

    def __init__(self, create_graph: bool) -> None:
        self.create_graph = create_graph
        self.entries: dict[int, list[Any]] = {}
        self.expected: dict[int, int] = {}  # how many gradients are still to come, by a leaf's id; see `expect`

    def add(self, target: Any, value: Any, fresh: bool) -> bool:
        """Add `value`; True if it is the first for `target`. `fresh`: nobody else can refer to its memory."""
        if self.create_graph and not isinstance(value, TensorBase):  # a rule may return a constant
            value = wrap(value)
        entry = self.entries.get(id(target))
        if entry is None:
            self.entries[id(target)] = [value, fresh, target]
            return True
        if self.create_graph or type(value) is np.ndarray:
            self._sum(entry, value)
        else:
            with on_device_of(value):  # which need not be the current one: `to_device` sends gradients to another
                self._sum(entry, value)
        return False

    def _sum(self, entry: list[Any], value: Any) -> None:
        if self.create_graph:
            entry[0] = entry[0] + value
        elif entry[1]:
            entry[0] += value
        else:
            entry[0], entry[1] = entry[0] + value, True

    def owned_buffer(self, target: Any, like: Array) -> tuple[Array, bool]:
        """An array of the target's shape that we own, for rules that add into it; and whether it is the first."""
        entry = self.entries.get(id(target))
        namespace = xp(like)
        if entry is None:
            buffer = namespace.zeros(target.shape, target.dtype)
            self.entries[id(target)] = [buffer, True, target]
            return buffer, True
        if not entry[1] or isinstance(entry[0], np.generic):
            entry[0], entry[1] = namespace.array(entry[0]), True
        return entry[0], False

    def pop(self, target: Any) -> list[Any]:
        """Take the entry of `target` out."""
        return self.entries.pop(id(target))

    def expect(self, nodes: Iterable[Node]) -> None:
        """Count what `nodes` are going to send to each leaf, so that `complete` can tell when it was the last."""
        for node in nodes:
            for parent in node.parents:
                if type(parent) is not Node:
                    self.expected[id(parent)] = self.expected.get(id(parent), 0) + 1

    def complete(self, node: Node) -> list[list[Any]]:
        """Take out the entries of the leaves for which `node`, which has sent its gradients, was the last to come."""
        entries = []
        for parent in node.parents:
            if type(parent) is not Node:
                left = self.expected[id(parent)] = self.expected[id(parent)] - 1
                if left == 0:
                    entries.append(self.pop(parent))
        return entries


def is_fresh(value: Any, g: Any, saved: tuple[Any, ...]) -> bool:
    """Whether a rule's result is an array that it made itself: not a view, nor one of the things it was given."""
    if value is g or getattr(value, "base", value) is not None:
        return False
    for other in saved:
        if value is other:
            return False
        if type(other) is tuple or type(other) is Saved:
            for one in other if type(other) is tuple else vars(other).values():
                if value is one:
                    return False
    return True


def deliver(leaf: Any, value: Any, owned: bool) -> None:
    """Put a gradient into ``leaf.grad``: memory of its own the first time, added in place afterwards."""
    if leaf is None:  # a retained tensor that nobody holds any more
        return
    if isinstance(value, TensorBase):
        value = value._data
    if leaf._grad is not None:
        buffer = leaf._grad._data
        with on_device_of(buffer):
            buffer += value
        leaf._grad._tick[0] += 1
        return
    leaf._grad = wrap(value if owned else copy(value))


def copy(array: Array) -> Array:
    """A copy with memory of its own, on the same device; a NumPy scalar becomes an array."""
    with on_device_of(array):
        return xp(array).array(array)
