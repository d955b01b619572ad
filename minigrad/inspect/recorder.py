"""The tape, written down while it is recorded: `record_tape`.

What the tape tells of an operation is read from its node at once, so that no array is kept alive. As text it is a table
with a line for each recorded operation, in the order in which a backward fires them.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from minigrad.device import is_array, on_device_of, xp
from minigrad.engine.interpreters import Operands, interpreting
from minigrad.engine.node import FREED, Array, Node, Saved, TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.inspect.lines import Line, current_line
from minigrad.inspect.memory import arrays_in
from minigrad.inspect.modules import RECOMPUTED, ModuleCall, ModuleCalls, ModuleWatcher
from minigrad.inspect.table import shape_text, shorten, size, table

SHOWN = 200  # operations, and leaves, that are printed

# ------------------------------------------------------------------- one operation


class Kept(NamedTuple):
    """Arrays that the tape keeps: their name, their bytes, and the rules that ask for them.

    `rules` are the arguments whose gradient needs them; without any, the composition that stands for the operation
    under ``create_graph`` does.
    """

    name: str
    nbytes: int
    rules: tuple[str, ...]


@dataclass(repr=False)
class Entry:
    """One recorded operation.

    Attributes:
        number: counts what was recorded; a backward goes from large to small.
        name, shape, dtype: of the operation, and of its output.
        inputs: ``(argument, shape)`` of the tensors and arrays that went in; only of those that require a gradient if
            the operation ran before the `record_tape` block.
        parents: ``(argument, number)`` for each input that requires a gradient: of an entry, or of a leaf (negative).
        kept: the arrays that it saved; None if a backward had freed it already.
        line: the line of the program that ran it; None of one that ran before the block.
        call: the call of a module that it ran in.
        inside: the number of the entry whose rule recorded it, under ``create_graph``, or in whose place it was
            recorded: a checkpoint that was computed again, a fused operation under ``create_graph``.
        expansions: the number of what gets its gradient, for each time that something was recorded in its place.
        fired: its place in the order of the backward, once its rules have run.
    """

    number: int
    name: str
    shape: tuple[int, ...]
    dtype: Any
    inputs: list[tuple[str, tuple[int, ...]]]
    parents: list[tuple[str, int]]
    kept: list[Kept] | None
    line: Line | None = None
    call: ModuleCall | None = None
    inside: int | None = None
    fired: int | None = None
    expansions: list[int] = field(default_factory=list)
    _norm: Any = None

    def __repr__(self) -> str:
        return f"<Entry {self.number}: {self.name}, {self.shape} {self.dtype}>"

    @property
    def gradient_norm(self) -> float | None:
        """The norm of the gradient of its output, in the last backward that came by. Reading it may synchronise."""
        return None if self._norm is None else float(self._norm)


@dataclass
class Leaf:
    """A tensor that no recorded operation made: a parameter, or an input that requires a gradient.

    Attributes:
        name: its dotted name, None if it has none.
        tensor: the tensor, None once nobody else holds it: the tape does not.
    """

    number: int
    name: str | None
    shape: tuple[int, ...]
    dtype: Any
    _reference: weakref.ref[TensorBase] = field(repr=False)
    _norm: Any = field(default=None, repr=False)

    @property
    def gradient_norm(self) -> float | None:
        """The norm of what the last backward that reached it brought, not of ``.grad``, which sums several."""
        return None if self._norm is None else float(self._norm)

    @property
    def tensor(self) -> Any:
        """The leaf itself, or None."""
        return self._reference()


def read_inputs(operation: Any, args: Sequence[Any]) -> list[tuple[str, tuple[int, ...]]]:
    """``(argument, shape)`` of the tensors and arrays among the arguments; ``*xs`` one by one, as ``xs[0]``."""
    named = [*zip(operation.parameters, args, strict=True)]
    if operation.variadic:
        name, parts = named.pop(0)
        named = [*((f"{name}[{i}]", part) for i, part in enumerate(parts)), *named]
    return [(name, tuple(value.shape)) for name, value in named if isinstance(value, TensorBase) or is_array(value)]


def input_names(node: Node) -> list[str]:
    """The argument that each parent was given for."""
    operation, plan = node.primitive, node.plan
    if operation.variadic:
        return [f"{operation.parameters[0]}[{i}]" for i in plan.wanted]
    return list(plan.names) if plan.names else ["input"] * len(node.parents)  # a checkpoint has parents without names


def read_kept(node: Node) -> list[Kept] | None:
    """The arrays that `node` saved, the largest first, and which rule asked for them."""
    if node.saved is FREED:
        return None
    if node.primitive.recomputes:
        return [Kept("arguments", sum(array.nbytes for array in arrays_in(node.saved)), ("input",))]
    kept, asking = [], _askers(node)
    for source, value in zip(node.plan.keep, node.saved, strict=True):
        kind, position = source
        whole = node.primitive.parameters[position] if kind == "value" else kind
        for name, part in vars(value).items() if isinstance(value, Saved) else [(whole, value)]:
            kept.append(Kept(name, sum(array.nbytes for array in arrays_in(part)), tuple(asking.get(source, ()))))
    return sorted([one for one in kept if one.nbytes], key=lambda one: -one.nbytes)


def _askers(node: Node) -> dict[tuple[str, int], list[str]]:
    """For each saved value, the arguments whose rule asks for it by name."""
    asking: dict[tuple[str, int], list[str]] = {}
    for call, name in zip(node.plan.calls, input_names(node), strict=True):
        for source in node.primitive.sources(call.rule, skip=call.adds):
            if source[0] not in ("g", "needs"):
                asking.setdefault(source, []).append(name)
    return asking


# --------------------------------------------------------------------- all of them


class Tape:
    """What was recorded, as data and as text: ``print`` it.

    Attributes:
        entries: an `Entry` for each operation, by number.
        leaves: a `Leaf` for each leaf that an operation refers to, by its (negative) number.
    """

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.leaves: dict[int, Leaf] = {}
        self._leaf_numbers: dict[int, int] = {}  # by the id of a leaf that is alive
        self._lock = threading.Lock()  # several threads may come by one leaf

    def in_firing_order(self) -> list[Entry]:
        """The entries as a backward comes to them: the latest first; once there was one, those it did not reach last.

        What fired more than once stands where it fired last.
        """
        return sorted(self.entries.values(),
                      key=lambda entry: (entry.fired is None, entry.fired or 0, -entry.number))

    def __str__(self) -> str:
        return listing(self)

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
        self.first_runs = 0  # of checkpoints: what they record is thrown away


class _Recorder(ModuleWatcher):
    """Writes a tape as operations are recorded, and as their rules run."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape, self._running, self._fired = tape, _Running(), itertools.count(1)

    def operation(self, op: Primitive, operands: Operands, proceed: Callable[[Operands], Any]) -> Any:
        self._running.first_runs += op.recomputes
        try:
            output = proceed(operands)
        finally:
            self._running.first_runs -= op.recomputes
        node = None if output is None else output._node
        if node is not None and not self._running.first_runs:
            entry = self._tape.add(node, self.calls)
            entry.line, entry.call = current_line(), self.calls.current
            if self._running.rules and self._running.rules[-1].number in self._tape.entries:
                entry.inside = self._running.rules[-1].number
            if op.recomputes:
                self.calls.keep(node)
            else:
                entry.inputs = read_inputs(op, operands.args)
        return output

    def rules(self, node: Node, g: Array | TensorBase, proceed: Callable[[Any], list[Any]]) -> list[Any]:
        self._fires(node, g)
        self._running.rules.append(node)
        try:
            with self.calls.inside(node):
                return proceed(g)
        finally:
            self._running.rules.pop()

    def _fires(self, node: Node, g: Array | TensorBase) -> None:
        entries = self._tape.entries
        if node.number not in entries:
            if self._running.first_runs:
                return
            self._tape.add(node, self.calls)  # it was recorded before the block
        entry = entries[node.number]
        entry.fired, entry._norm = next(self._fired), gradient_norm(g)

    def expanded(self, node: Node, target: Node | TensorBase) -> None:
        entry = self._tape.entries.get(node.number)
        if entry is not None:
            entry.expansions.append(self._tape.number_of(target, self.calls))

    def leaf_reached(self, leaf: TensorBase, gradient: Array | TensorBase) -> None:
        if not self._running.first_runs:
            reached = self._tape.leaves[self._tape.number_of(leaf, self.calls)]
            reached._norm = gradient_norm(gradient)


@contextlib.contextmanager
def record_tape() -> Iterator[Tape]:
    """Write down all that is recorded inside, and the gradients that come by: ``with record_tape() as t: …; print(t)``.

    The values themselves are not kept. Local to the current thread or task. Of an operation or a leaf that several
    backwards come by, it has the gradient of the last. Dotted names begin at the outermost module that is called, under
    the name of its class.
    """
    tape = Tape()
    with interpreting(_Recorder(tape)):
        yield tape


# ------------------------------------------------------------------------- as text


_READING = """\
{count}, in the order in which {order}: what was recorded last comes first.
  made at    the line of the program that ran the operation, and the one in minigrad.functional that it led to
  shapes     its tensors and arrays → its output, and the dtype of that
  saved      the arrays kept for the backward, and whose gradient needs them: x 640 B→∂weight; w 512 B→∂x
  |gradient| the norm of the gradient of its output, when its rules ran last"""


def dtype_text(dtype: Any) -> str:
    """``f32`` for float32."""
    kind = np.dtype(dtype)
    return f"{kind.kind}{8 * kind.itemsize}"


def kept_text(entry: Entry) -> str:
    """The arrays that an operation saved, and for which rules: ``y 704 B→∂x; x 512 B→∂y``."""
    if entry.kept is None:
        return "freed"
    return "; ".join(f"{one.name} {size(one.nbytes)}→{''.join(f'∂{rule}' for rule in dict.fromkeys(one.rules))}"
                     for one in entry.kept)


def norm_text(norm: float | None) -> str:
    """A norm with three digits, blank if there is none."""
    return "" if norm is None else f"{norm:.2e}"


def _status(one: Entry | Leaf, any_fired: bool) -> str:
    return norm_text(one.gradient_norm) or ("not reached" if any_fired else "")


def _row(place: int, entry: Entry, any_fired: bool) -> tuple[str, ...]:
    shapes = " ".join(shape_text(shape) for _, shape in entry.inputs)
    shapes = f"{shorten(shapes, 30)} → {shape_text(entry.shape)} {dtype_text(entry.dtype)}"
    return (str(place), entry.name, "" if entry.line is None else str(entry.line), shapes,
            shorten(kept_text(entry), 40), _status(entry, any_fired))


def _heading(entry: Entry, tape: Tape) -> str:
    """The module that an operation belongs to; whether it was computed again, or by whose rule it was recorded."""
    call, by = entry.call, ""
    if entry.inside is not None:
        maker = tape.entries[entry.inside]
        if maker.name != "checkpoint":
            by = f"recorded by the backward of {maker.name}"
        call = call or maker.call
    labels = [one.label for one in call.chain] if call is not None else []
    module = next((label for label in reversed(labels) if label != RECOMPUTED), "")
    return ", ".join(part for part in (module, RECOMPUTED if RECOMPUTED in labels else "", by) if part)


def listing(tape: Tape) -> str:
    """The whole text: how to read it, the operations, the leaves; of a long tape, those in the middle left out."""
    entries = tape.in_firing_order()
    any_fired = any(entry.fired is not None for entry in entries)
    order = "the backward fired them" if any_fired else "a backward will fire them"
    operations = "1 operation" if len(entries) == 1 else f"{len(entries)} operations"
    rows: list[tuple[str, ...] | str] = []
    heading, left_out = "", range(SHOWN // 2, len(entries) - SHOWN // 2)
    for place, entry in enumerate(entries):
        if place in left_out:
            if place == left_out[0]:
                rows.append(f"… {len(left_out)} more …")
            continue
        if _heading(entry, tape) != heading:
            heading = _heading(entry, tape)
            rows.append(f"── {heading or 'outside of modules'}")
        rows.append(_row(place + 1, entry, any_fired))
    text = [_READING.format(count=operations, order=order), "",
            table(["#", "operation", "made at", "shapes", "saved", "|gradient|"], rows, right=(0, 5))]
    leaves = list(tape.leaves.values())
    if leaves:
        more = [f"… {len(leaves) - SHOWN} more"] if len(leaves) > SHOWN else []
        shown = [(leaf.name or "(no name)", f"{shape_text(leaf.shape)} {dtype_text(leaf.dtype)}",
                  _status(leaf, any_fired)) for leaf in leaves[:SHOWN]]
        text += ["", table(["leaf", "shape", "|gradient|"], [*shown, *more], right=(2,))]
    return "\n".join(text)
