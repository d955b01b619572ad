"""Where the memory goes: the bytes that the tape keeps for the backward pass, by operation and by module."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minigrad.device import is_array
from minigrad.engine.node import FREED, Node, Saved, TensorBase
from minigrad.func.checkpointing import Segment
from minigrad.inspect.hooks import Event, op_hook
from minigrad.inspect.table import percent, size, table

Place = tuple[str, str]  # an operation's name and the path of a module


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
    leaves, which are parameters and inputs, exists anyway and is counted apart; raw arrays, such as masks, are not.
    What a checkpoint saves in its first run is thrown away at once and not counted; what it saves when it is computed
    again is.

    Attributes:
        peak: the most bytes that the tape kept at a time.
        peak_by_place: those bytes, by the operation's name and the path of the module.
        peak_given: the bytes of leaves that rules referred to then.
    """

    def __init__(self) -> None:
        self.peak = self.peak_given = 0
        self.peak_by_place: Counter[Place] = Counter()
        self._now: Counter[Place] = Counter()
        self._current = self._given_bytes = 0
        self._held: dict[int, list[Any]] = {}  # by owner's id: how often it is held, its bytes, its place or None
        self._nodes: dict[int, tuple[weakref.ref[Node], list[int]]] = {}  # what each node holds, by node's number
        self._leaf_ticks: dict[int, list[int]] = {}  # the change ticks of leaves, which views of them share
        self._last = threading.local()  # its `node`: a weak reference to that whose rules a thread ran last
        self._lock = threading.RLock()  # threads share leaves; and a node may die at any moment

    @property
    def current(self) -> int:
        """The bytes that the tape keeps now, of what was recorded inside the block."""
        self._release(list(self._nodes))
        return self._current

    @property
    def given(self) -> int:
        """The bytes of leaves that rules refer to now."""
        self._release(list(self._nodes))
        return self._given_bytes

    @property
    def by_place(self) -> dict[Place, int]:
        """What `current` is made of, by the operation's name and the path of the module."""
        self._release(list(self._nodes))
        return dict(self._now)

    def _after(self, event: Event) -> None:
        last = getattr(self._last, "node", None)
        last = None if last is None else last()
        if last is not None:
            self._release([last.number])
        if event.phase == "backward":
            self._last.node = weakref.ref(event.node) if event.node is not None else None  # freed only after this event
        elif event.node is not None and not event.transient:
            with self._lock:
                self._hold(event.node, event.inputs, event.module)

    def _hold(self, node: Node, inputs: Iterable[Any], module: str) -> None:
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
        if (self._current, self._given_bytes) > (self.peak, self.peak_given):
            self.peak, self.peak_given, self.peak_by_place = self._current, self._given_bytes, self._now.copy()

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
        if place is None:
            self._given_bytes += sign * count
            return
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

    def text(self, count: int | None = 20) -> str:
        """The tables, with the `count` largest operations and modules, and the sum of the rest; None for all."""
        lines = [f"the tape kept {size(self.peak)} at its peak, and keeps {size(self.current)} now",
                 f"parameters and inputs that its rules refer to: {size(self.peak_given)} then, {size(self.given)} now"]
        for title, part in (("operation", 0), ("module", 1)):
            at_peak, now = _summed(self.peak_by_place, part), _summed(self._now, part)
            largest = at_peak.most_common(count)
            rows = [(name, bytes_, now[name]) for name, bytes_ in largest]
            if len(largest) < len(at_peak):
                rest = set(at_peak) - {name for name, _ in largest}
                more = f"… {len(rest)} more"
                rows.append((more, sum(at_peak[name] for name in rest), sum(now[name] for name in rest)))
            if title == "operation" or set(at_peak) != {"(no module)"}:
                cells = [(name, size(peak), percent(peak, self.peak), size(left)) for name, peak, left in rows]
                lines += ["", table((title, "at the peak", "share", "now"), cells, right=(1, 2, 3))]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

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


@contextlib.contextmanager
def memory_meter(model: Any = None) -> Iterator[MemoryMeter]:
    """Count the bytes that the tape keeps: ``with memory_meter() as memory: …``, then ``print(memory)``.

    What is recorded inside the block is followed until it is freed, after the block too. Gradients, and what an
    operation needs only while it runs, are not on the tape and are not counted.

    Args:
        model: a module, from which the dotted names of modules are counted; by default from the outermost that is
            called, under the name of its class.
    """
    meter = MemoryMeter()
    with op_hook(after=meter._after, model=model, gradients=False):
        yield meter
