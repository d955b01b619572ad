"""Where the memory goes: the bytes that the tape keeps for the backward pass, by operation and by module."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from minigrad.device import is_array
from minigrad.engine.interpreters import Operands, interpreting
from minigrad.engine.node import FREED, Array, Node, Saved, TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.func.checkpointing import Segment
from minigrad.inspect.modules import ModuleWatcher
from minigrad.inspect.table import percent, size, table

Place = tuple[str, str]  # an operation's name and the path of a module
SHOWN = 20  # rows of a table


def owner(array: Any) -> Any:
    """The array whose memory `array` looks at: the one at the end of its chain of bases."""
    while is_array(getattr(array, "base", None)):
        array = array.base
    return array


def arrays_in(value: Any) -> Iterator[Any]:
    """The arrays that a saved value of a node holds."""
    if isinstance(value, TensorBase):
        yield value._data
    elif is_array(value):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from arrays_in(part)
    elif isinstance(value, Saved):
        yield from arrays_in(tuple(vars(value).values()))
    elif isinstance(value, Segment):
        yield from arrays_in((*value.args, *value.kwargs.values()))


class MemoryMeter:
    """What `memory_meter` counts. ``print`` shows it at its peak, by operation and by module.

    Memory is counted once, whole, however many saved values look at it, for the operation that saved it first. That of
    leaves, which are parameters and inputs, exists anyway and is not counted. What a checkpoint saves in its first run
    is thrown away at once and not counted; what it saves when it is computed again is.

    Attributes:
        peak: the most bytes that the tape kept at a time.
        peak_by_place: those bytes, by the operation's name and the path of the module.
    """

    def __init__(self) -> None:
        self.peak = 0
        self.peak_by_place: Counter[Place] = Counter()
        self._now: Counter[Place] = Counter()
        self._current = 0
        self._held: dict[int, list[Any]] = {}  # by owner's id: how often it is held, its bytes, its place or None
        self._nodes: dict[int, tuple[weakref.ref[Node], list[int]]] = {}  # what each node holds, by node's number
        self._leaf_ticks: dict[int, list[int]] = {}  # the change ticks of leaves, which views of them share
        self._lock = threading.RLock()  # threads share leaves; and a node may die at any moment

    @property
    def current(self) -> int:
        """The bytes that the tape keeps now, of what was recorded inside the block."""
        self._release(list(self._nodes))
        return self._current

    @property
    def by_place(self) -> dict[Place, int]:
        """What `current` is made of, by the operation's name and the path of the module."""
        self._release(list(self._nodes))
        return dict(self._now)

    def _hold(self, node: Node, inputs: Iterable[Any], module: str) -> None:
        with self._lock:
            given = self._owners_given(inputs)
            held = []
            for array in arrays_in(node.saved):
                whole = owner(array)
                entry = self._held.get(id(whole))
                if entry is None:
                    place = None if id(whole) in given else (node.primitive.name, module)
                    entry = self._held[id(whole)] = [0, int(whole.nbytes), place]
                    self._count(entry, +1)
                entry[0] += 1
                held.append(id(whole))
            died = functools.partial(_died, weakref.ref(self), node.number)
            self._nodes[node.number] = weakref.ref(node, died), held
            if self._current > self.peak:
                self.peak, self.peak_by_place = self._current, self._now.copy()

    def _owners_given(self, values: Iterable[Any]) -> set[int]:
        """The ids of the owners of memory that leaves among `values`, and views of leaves, look at."""
        given: set[int] = set()
        for value in values:
            if isinstance(value, TensorBase):
                if value._node is None:
                    self._leaf_ticks[id(value._version)] = value._version
                if id(value._version) in self._leaf_ticks:
                    given.add(id(owner(value._data)))
            elif isinstance(value, tuple):
                given |= self._owners_given(value)
        return given

    def _count(self, entry: list[Any], sign: int) -> None:
        _, count, place = entry
        if place is not None:
            self._current += sign * count
            self._now[place] += sign * count
            if not self._now[place]:
                del self._now[place]

    def _release(self, numbers: Iterable[int], dead: bool = False) -> None:
        """Let go of what the nodes of these numbers held, if a backward freed them or they are gone."""
        with self._lock:
            for number in numbers:
                if number not in self._nodes:
                    continue
                node = self._nodes[number][0]()
                if not dead and node is not None and node.saved is not FREED:
                    continue
                for key in self._nodes.pop(number)[1]:
                    entry = self._held[key]
                    entry[0] -= 1
                    if not entry[0]:
                        self._count(self._held.pop(key), -1)

    def __str__(self) -> str:
        lines = [f"the tape kept {size(self.peak)} at its peak, and keeps {size(self.current)} now"]
        for title, part in (("operation", 0), ("module", 1)):
            at_peak, now = _summed(self.peak_by_place, part), _summed(self._now, part)
            if title == "operation" or set(at_peak) != {"(no module)"}:
                cells = [(name, size(peak), percent(peak, self.peak), size(now[name]))
                         for name, peak in at_peak.most_common(SHOWN)]
                more = [f"… {len(at_peak) - SHOWN} more"] if len(at_peak) > SHOWN else []
                lines += ["", table((title, "at the peak", "share", "now"), [*cells, *more], right=(1, 2, 3))]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<MemoryMeter of at most {self.peak:,} bytes; print() shows it>"


def _summed(counts: Mapping[Place, int], part: int) -> Counter[str]:
    """By operation (`part` 0) or by module (1)."""
    total: Counter[str] = Counter()
    for place, count in counts.items():
        total[place[part] or "(no module)"] += count
    return total


def _died(meter: weakref.ref[MemoryMeter], number: int, _: Any) -> None:
    alive = meter()
    if alive is not None:
        alive._release([number], dead=True)


class _Running(threading.local):
    """What runs in a thread."""

    def __init__(self) -> None:
        self.first_runs = 0  # of checkpoints: what they record is thrown away
        self.last: weakref.ref[Node] | None = None  # that whose rules ran last: it is freed only after them


class _Watcher(ModuleWatcher):
    """Tells a meter what is recorded, and when it may have been freed."""

    def __init__(self, meter: MemoryMeter) -> None:
        super().__init__()
        self._meter, self._running = meter, _Running()

    def operation(self, op: Primitive, operands: Operands, proceed: Callable[[Operands], Any]) -> Any:
        self._running.first_runs += op.recomputes
        try:
            output = proceed(operands)
        finally:
            self._running.first_runs -= op.recomputes
            self._release_last()
        node = None if output is None else output._node
        if node is not None and op.recomputes:
            self.calls.keep(node)
        if node is not None and not self._running.first_runs:
            self._meter._hold(node, operands.args, self.calls.path)
        return output

    def rules(self, node: Node, g: Array | TensorBase, proceed: Callable[[Any], list[Any]]) -> list[Any]:
        try:
            with self.calls.inside(node):
                return proceed(g)
        finally:
            self._release_last()
            self._running.last = weakref.ref(node)

    def _release_last(self) -> None:
        last = None if self._running.last is None else self._running.last()
        if last is not None:
            self._meter._release([last.number])


@contextlib.contextmanager
def memory_meter() -> Iterator[MemoryMeter]:
    """Count the bytes that the tape keeps: ``with memory_meter() as memory: …``, then ``print(memory)``.

    What is recorded inside the block is followed until it is freed, after the block too. Gradients, and what an
    operation needs only while it runs, are not on the tape and are not counted.
    """
    meter = MemoryMeter()
    with interpreting(_Watcher(meter)):
        yield meter
