"""The tape, written down: while it is recorded (`record_tape`), or from a tensor that was recorded before (`tape`)."""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from minigrad.device import on_device_of, xp
from minigrad.engine.node import Array, Node, TensorBase, gradient_target
from minigrad.inspect.entry import Entry, Leaf, input_names, read_inputs, read_kept
from minigrad.inspect.lines import current_line
from minigrad.inspect.listing import listing
from minigrad.inspect.modules import ModuleCalls
from minigrad.inspect.observer import Observer, observing


class Tape:
    """What was recorded, as data and as text: ``print`` it.

    Attributes:
        entries: an `Entry` for each operation, by number.
        leaves: a `Leaf` for each leaf that an operation refers to, by its (negative) number.
        watched: whether it comes from a `record_tape` block, which alone sees lines, modules and gradients.
    """

    def __init__(self, watched: bool) -> None:
        self.entries: dict[int, Entry] = {}
        self.leaves: dict[int, Leaf] = {}
        self.watched = watched
        self._leaf_numbers: dict[int, int] = {}  # by the id of a leaf that is alive
        self._lock = threading.Lock()  # several threads may come by one leaf

    def in_firing_order(self) -> list[Entry]:
        """The entries as a backward comes to them: the latest first; once there was one, those it did not reach last.

        What fired more than once stands where it fired last.
        """
        return sorted(self.entries.values(),
                      key=lambda entry: (entry.fired is None, entry.fired or 0, -entry.number))

    def text(self, count: int | None = 200, width: int = 120) -> str:
        """The table, at most `width` columns wide; of more than `count` operations, those in the middle left out."""
        return listing(self, count, width)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Tape of {len(self.entries)} operations; print() shows them>"

    def add(self, node: Node, calls: ModuleCalls) -> Entry:
        """Write down what `node` tells."""
        parents = []
        for name, parent in zip(input_names(node), node.parents, strict=True):
            parents.append((name, self.number_of(parent, calls)))
        inputs = [(name, tuple(p.shape if isinstance(p, Node) else p._data.shape))
                  for name, p in zip(input_names(node), node.parents, strict=True)]
        entry = Entry(node.number, node.primitive.name, tuple(node.shape), node.dtype, inputs, parents, read_kept(node))
        self.entries[node.number] = entry
        return entry

    def number_of(self, tensor: Any, calls: ModuleCalls) -> int:
        """The number of a node, or of a leaf, which gets one here."""
        if isinstance(tensor, Node):
            return tensor.number
        with self._lock:
            number = self._leaf_numbers.get(id(tensor))
            if number is None or self.leaves[number].tensor is not tensor:
                number = self._leaf_numbers[id(tensor)] = -1 - len(self.leaves)
                data = tensor._data
                self.leaves[number] = Leaf(number, calls.name_of(tensor), tuple(data.shape), data.dtype,
                                           weakref.ref(tensor))
            return number


def gradient_norm(gradient: Array | TensorBase) -> Any:
    """The root of the sum of squares, as a 0-d array where the gradient is: nothing waits for it."""
    raw = gradient._data if isinstance(gradient, TensorBase) else gradient
    with on_device_of(raw):
        wide = raw.astype("float64")
        return xp(wide).sqrt((wide * wide).sum())


class _Running(threading.local):
    """What runs in a thread."""

    def __init__(self) -> None:
        self.rules: list[Node] = []
        self.first_runs: list[Any] = []  # of checkpoints: what they record is thrown away


class _Recorder(Observer):
    """Writes a tape as operations are recorded, and as their rules run."""

    follows_gradients = False

    def __init__(self, tape: Tape, model: Any) -> None:
        self._tape, self._calls = tape, ModuleCalls(model)
        self._running, self._fired = _Running(), itertools.count(1)

    def operation_begins(self, operation: Any, args: Sequence[Any]) -> None:
        if operation.recomputes:
            self._running.first_runs.append(args)

    def operation_ends(self, operation: Any, args: Sequence[Any], output: TensorBase | None) -> None:
        if operation.recomputes:
            while self._running.first_runs.pop() is not args:
                pass
        node = None if output is None else output._node
        if node is None or self._running.first_runs:
            return
        entry = self._add(node)
        if operation.recomputes:
            self._calls.keep(node)
        else:
            entry.inputs = read_inputs(operation, args)

    def _add(self, node: Node) -> Entry:
        entry = self._tape.add(node, self._calls)
        entry.line, entry.call = current_line(), self._calls.current
        if self._running.rules and self._running.rules[-1].number in self._tape.entries:
            entry.inside = self._running.rules[-1].number
        return entry

    def rules_begin(self, node: Node, gradient: Array | TensorBase) -> None:
        entries = self._tape.entries
        self._running.rules.append(node)
        self._calls.rules_begin(node)
        if node.number not in entries:
            if self._running.first_runs:
                return
            self._tape.add(node, self._calls)  # it was recorded before the block
        entry = entries[node.number]
        entry.fired, entry.times, entry._norm = next(self._fired), entry.times + 1, gradient_norm(gradient)

    def expanded(self, node: Node, target: Node | TensorBase) -> None:
        entry = self._tape.entries.get(node.number)
        if entry is not None:
            entry.expansions.append(self._tape.number_of(target, self._calls))

    def leaf_reached(self, leaf: TensorBase, gradient: Array | TensorBase) -> None:
        if not self._running.first_runs:
            reached = self._tape.leaves[self._tape.number_of(leaf, self._calls)]
            reached._norm, reached.times = gradient_norm(gradient), reached.times + 1

    def rules_end(self, node: Node) -> None:
        self._calls.rules_end(node)
        while self._running.rules.pop() is not node:
            pass

    def module_begins(self, module: Any) -> None:
        self._calls.begin(module)

    def module_ends(self, module: Any) -> None:
        self._calls.end(module)


@contextlib.contextmanager
def record_tape(model: Any = None) -> Iterator[Tape]:
    """Write down all that is recorded inside, and the gradients that come by: ``with record_tape() as t: …; print(t)``.

    The values themselves are not kept. Local to the current thread or task. Of an operation or a leaf that several
    backwards come by, it has the gradient of the last.

    Args:
        model: a module, from which dotted names are counted; by default from the outermost module that is called,
            under the name of its class.
    """
    tape = Tape(watched=True)
    with observing(_Recorder(tape, model)):
        yield tape


def tape(tensor: Any, model: Any = None) -> Tape:
    """The tape of what `tensor` was computed from, as its nodes tell it: no lines, modules and gradients.

    Args:
        tensor: the result of recorded operations.
        model: a module whose parameters' names are shown.

    Raises:
        TypeError: not a tensor.
        ValueError: nothing was recorded.
    """
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"tape: a tensor expected, got {type(tensor).__name__}")
    if tensor._node is None:
        raise ValueError(f"tape: nothing was recorded for this tensor of shape {tuple(tensor._data.shape)}: no "
                         "operation made it from a tensor that requires a gradient")
    found, calls = Tape(watched=False), ModuleCalls(model)
    stack = [gradient_target(tensor)]
    while stack:
        node = stack.pop()
        if isinstance(node, Node) and node.number not in found.entries:
            found.add(node, calls)
            stack.extend(node.parents)
    return found
