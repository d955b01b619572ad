"""Where the time goes: seconds for each operation, forward and backward."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from minigrad.device import device_of, is_array, synchronize
from minigrad.inspect.hooks import Event, op_hook
from minigrad.inspect.table import milliseconds, percent, table
from minigrad.tape import TensorBase


@dataclass
class OperationTime:
    """The time of one operation: seconds of its own and numbers of calls, in the forward and in the backward."""

    name: str
    forward: float = 0.0
    forward_calls: int = 0
    backward: float = 0.0
    backward_calls: int = 0

    @property
    def total(self) -> float:
        """Seconds, both ways."""
        return self.forward + self.backward


class Timer:
    """What `timer` measured. ``print`` shows it, the most expensive operation first.

    Attributes:
        operations: `OperationTime` by the operation's name.
        elapsed: seconds that the block took, or has taken so far.
    """

    def __init__(self, synchronized: bool) -> None:
        self.operations: dict[str, OperationTime] = {}
        self._synchronized = synchronized
        self._began = perf_counter()
        self._ended: float | None = None

    @property
    def elapsed(self) -> float:
        """Seconds from the beginning of the block to its end, or to now."""
        return (perf_counter() if self._ended is None else self._ended) - self._began

    @property
    def total(self) -> float:
        """Seconds that all operations took; the rest of the block is Python, optimizer and bookkeeping."""
        return sum(row.total for row in self.operations.values())

    def _wait(self, event: Event) -> None:
        if self._synchronized:
            for value in (*event.inputs, event.output):
                raw = value._data if isinstance(value, TensorBase) else value
                if is_array(raw) and device_of(raw) != "cpu":
                    synchronize(device_of(raw))
                    return

    def _before(self, event: Any) -> None:
        self._wait(event)
        event.nested, event.began = 0.0, perf_counter()

    def _after(self, event: Any) -> None:
        self._wait(event)
        elapsed = perf_counter() - event.began
        if event.parent is not None:
            event.parent.nested += elapsed
        row = self.operations.setdefault(event.name, OperationTime(event.name))
        if event.phase == "forward":
            row.forward += elapsed - event.nested
            row.forward_calls += 1
        else:
            row.backward += elapsed - event.nested
            row.backward_calls += 1

    def __str__(self) -> str:
        total = self.total
        rows = [(row.name, str(row.forward_calls), milliseconds(row.forward), str(row.backward_calls),
                 milliseconds(row.backward), milliseconds(row.total), percent(row.total, total))
                for row in sorted(self.operations.values(), key=lambda row: -row.total)]
        header = ("operation", "forwards", "ms", "backwards", "ms", "ms in all", "share")
        return (f"{milliseconds(total)} ms in operations, of {milliseconds(self.elapsed)} ms in the block\n"
                + table(header, rows, right=range(1, 7)))


@contextlib.contextmanager
def timer(synchronize: bool = True) -> Iterator[Timer]:
    """Measure the time of every operation inside the block: ``with timer() as times: …``, then ``print(times)``.

    The times are an operation's own: what runs inside it (the operations of a rule under ``create_graph``, a
    checkpoint that is computed again) is counted where it belongs, and once. A composition is no operation: its steps
    are. Watching costs a few microseconds for each operation, outside of the measured times.

    Args:
        synchronize: on a GPU, wait for it before and after each operation. False measures how long the host takes to
            hand the work over.
    """
    times = Timer(synchronize)
    try:
        with op_hook(times._before, times._after, gradients=False):
            yield times
    finally:
        times._ended = perf_counter()
