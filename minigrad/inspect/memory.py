"""Where the memory goes: the bytes that the tape keeps for the backward pass."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

from minigrad.device import is_array
from minigrad.engine.watch import Watcher, watch
from minigrad.inspect.frames import arrays_in, node_of, saved_by
from minigrad.inspect.table import size


class MemoryMeter(Watcher):
    """What `memory_meter` counts: the memory that operations save for the backward, from then on until it is free.

    Memory is counted once, whole, however many saved values look at it. That of leaves (parameters and inputs) and of
    raw arrays exists anyway and is not counted.

    Attributes:
        peak: the most bytes at a time.
    """

    def __init__(self) -> None:
        self.peak = 0
        self._saved, self._given = WeakValueDictionary[int, Any](), WeakValueDictionary[int, Any]()  # by id

    @property
    def current(self) -> int:
        """The bytes now."""
        return sum(whole.nbytes for one in self._saved.valuerefs() if (whole := one()) is not None)

    def after(self, what: Any, given: Any, made: Any) -> None:
        """Count what an operation has saved."""
        node = node_of(what, made)
        if node is not None:
            leaves = [value for value in given if getattr(value, "_node", None) is None]
            for whole in map(owner, arrays_in(leaves)):
                self._given[id(whole)] = whole
            for whole in [owner(array) for _, array in saved_by(node)]:
                if id(whole) not in self._given:
                    self._saved[id(whole)] = whole
            self.peak = max(self.peak, self.current)

    def __str__(self) -> str:
        return f"the tape kept {size(self.peak)} at its peak, and keeps {size(self.current)} now"


def owner(array: Any) -> Any:
    """The array whose memory `array` looks at: the one at the end of its chain of bases."""
    while is_array(getattr(array, "base", None)):
        array = array.base
    return array


@contextlib.contextmanager
def memory_meter() -> Iterator[MemoryMeter]:
    """Count the bytes that the tape keeps: ``with memory_meter() as memory: …``, then ``print(memory)``.

    What is saved inside the block is followed until it is free, after the block too. Gradients, and what an operation
    needs only while it runs, are not counted.
    """
    meter = MemoryMeter()
    with watch(meter):
        yield meter
