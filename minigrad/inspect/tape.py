"""The tape, written down while it is recorded: `record_tape`.

What the tape tells of an operation is read from its node at once, so that no array is kept alive. As text it is a table
with a line for each recorded operation, in the order in which a backward fires them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minigrad.device import on_device_of, xp
from minigrad.engine.node import Node
from minigrad.engine.watch import watch
from minigrad.inspect.frames import Frame, FrameWatcher, arrays_in, input_names, saved_by
from minigrad.inspect.lines import current_lines
from minigrad.inspect.table import size, table


@dataclass
class Entry:
    """One recorded operation.

    Attributes:
        name: the operation's.
        heading: its module; under ``create_graph``, or if it is computed again, the operation whose rules recorded it.
        modules: the frames of the calls around it, the outermost first.
        shape, dtype: of the output.
        inputs: the shapes of the tensors and arrays that went in.
        parents: ``(argument, number)`` for each input that requires a gradient: of an entry, or of a leaf.
        saved: ``(name, bytes)`` of the arrays that it keeps for its rules.
        line: of the program that ran it, and that in minigrad.functional that it led to: ``train:12›softmax:33``.
        gradient_norm: that of its output in the last backward that came by, a 0-d array.
    """

    name: str
    heading: str
    modules: tuple[Frame, ...]
    shape: tuple[int, ...]
    dtype: Any
    inputs: list[tuple[int, ...]]
    parents: list[tuple[str, int]]
    saved: list[tuple[str, int]]
    line: str
    gradient_norm: Any = None


class Tape(FrameWatcher):
    """What was recorded, as data and as text: ``print`` it.

    Attributes:
        entries: an `Entry` for each operation, by a number that counts them; a backward goes from large to small.
        leaves: the leaves that operations refer to, parameters and inputs, by number, which is minus their id.
    """

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[int, Entry] = {}
        self.leaves: dict[int, Any] = {}

    def before(self, what: Any, given: Any) -> None:
        """The rules of a node fire: note the gradient that they get."""
        self.enter(what)
        if isinstance(what, Node) and what.number in self.entries:
            self.entries[what.number].gradient_norm = norm_of(given)

    def after(self, what: Any, given: Any, made: Any) -> None:
        """An operation was recorded: for good, unless a checkpoint, the one operation with others in it, runs first."""
        frame, node = self.leave(what, made)
        outer = frame.around("operation")[1:]
        if node is not None and all(operation.rules for operation in outer):
            by = [f"recorded by the backward of {operation.name}" for operation in outer[:1]]
            parents = [getattr(parent, "number", -id(parent)) for parent in node.parents]
            self.leaves |= {-id(parent): parent for parent in node.parents if not isinstance(parent, Node)}
            lines = current_lines()
            ends = lines if len(lines) < 2 else [lines[0], lines[-1]]
            self.entries[node.number] = Entry(
                frame.name, ", ".join(filter(None, [frame.module, *by])), frame.modules, node.shape, node.dtype,
                [array.shape for array in arrays_in(given)], list(zip(input_names(node), parents, strict=True)),
                [(name, array.nbytes) for name, array in saved_by(node)],
                "›".join(f"{Path(line.filename).stem}:{line.lineno}" for line in ends))

    def name_of(self, number: int) -> str:
        """The dotted name of a leaf, "" if it has none."""
        return self.names.get(-number, "")

    def __str__(self) -> str:
        rows, heading = list[Any](), ""
        for place, (_, entry) in enumerate(sorted(self.entries.items(), reverse=True), 1):
            if entry.heading != heading:
                heading = entry.heading
                rows.append(f"── {heading or 'outside of modules'}")
            shapes = f"{' '.join(map(str, entry.inputs))[:40]} → {entry.shape} {entry.dtype}"
            saved = "; ".join(f"{name} {size(count)}" for name, count in entry.saved)
            rows.append((str(place), entry.name, entry.line, shapes, saved, norm_text(entry.gradient_norm)))
        leaves = [(self.name_of(number) or "(no name)", f"{leaf.shape} {leaf.dtype}", norm_text(norm_of(leaf.grad)))
                  for number, leaf in self.leaves.items()]
        return "\n\n".join([READING.format(count=len(self.entries)),
                            table(["#", "operation", "made at", "shapes", "saved", "|gradient|"], rows, right=(0, 5)),
                            table(["leaf", "shape", "|gradient|"], leaves, right=(2,))])

    def __repr__(self) -> str:
        return f"<Tape of {len(self.entries)} operations; print() shows them>"


READING = """\
{count} operations, as a backward fires them: what was recorded last comes first.
  made at    the line of the program that ran the operation, and the one in minigrad.functional that it led to
  shapes     its tensors and arrays → its output, and the dtype of that
  saved      what is kept for the backward
  |gradient| the norm of the gradient of its output, when its rules ran last; of a leaf, that of its .grad"""


def norm_of(gradient: Any) -> Any:
    """The root of the sum of squares, a 0-d array where the gradient is, for which nothing waits; None of None."""
    if gradient is None:
        return None
    raw = getattr(gradient, "_data", gradient)
    with on_device_of(raw):
        wide = raw.astype("float64")
        return xp(wide).sqrt((wide * wide).sum())


def norm_text(norm: Any) -> str:
    """A norm with three digits, blank if there is none."""
    return "" if norm is None else f"{float(norm):.2e}"


@contextlib.contextmanager
def record_tape() -> Iterator[Tape]:
    """Write down all that is recorded inside, and the gradients that come by: ``with record_tape() as t: …; print(t)``.

    Leaves are kept, other values are not. Local to the current thread or task. Of an operation that several backwards
    come by, it has the gradient of the last. Dotted names begin at the outermost module that is called, under the name
    of its class.
    """
    tape = Tape()
    with watch(tape):
        yield tape
