"""The recorded graph as a picture: `draw` writes it in Graphviz's language DOT, and Graphviz lays it out.

A box is an operation or a leaf; an edge leads from a value to the input that it enters; a frame is the call of a
module, around all that ran in it. DOT is text, which needs no package. Drawing that text as SVG needs the package
pygraphviz, which brings Graphviz with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from html import escape
from pathlib import Path

from minigrad.inspect.modules import ModuleCall
from minigrad.inspect.recorder import Entry, Leaf, Tape, dtype_text, norm_text
from minigrad.inspect.table import shape_text

LEAF, OPERATION = 'border="2" style="rounded" color="#2f8f57"', 'border="1" color="#6e7781"'


class Drawing:
    """A picture of a recorded graph. A notebook shows it.

    Attributes:
        dot: the graph in the language of Graphviz.
    """

    def __init__(self, tape: Tape) -> None:
        self.dot = _dot(tape)

    @cached_property
    def svg(self) -> str:
        """An SVG document that refers to no other file. ImportError without pygraphviz."""
        try:
            import pygraphviz
        except ImportError as error:
            raise ImportError("drawing the graph needs the package 'pygraphviz', from  pip install "
                              "'minigrad-transformer[draw]'; as .dot it needs none") from error
        document = pygraphviz.AGraph(string=self.dot).draw(format="svg", prog="dot").decode()
        return document[document.index("<svg"):]  # without the prolog, it can stand inside a page as well

    def save(self, path: str | Path) -> None:
        """Write to a file; its name ends in ``.svg`` or ``.dot``. ValueError for any other."""
        path = Path(path)
        if path.suffix not in (".svg", ".dot"):
            raise ValueError(f"save: the name must end in .svg or .dot, got {path.name!r}")
        path.write_text(self.svg if path.suffix == ".svg" else self.dot, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return "<Drawing; save('graph.svg') writes it>"


def draw(tape: Tape) -> Drawing:
    """Draw what is on a tape from `record_tape`, with its modules as frames.

    The lines of the program are shown where the mouse points. After a backward inside the block, the boxes have the
    norms of their gradients, and the larger a norm, the stronger the colour.

    Raises:
        TypeError: not a tape.
        ValueError: nothing was recorded.
    """
    if not isinstance(tape, Tape):
        raise TypeError(f"draw: a tape from record_tape() expected, got {type(tape).__name__}")
    if not tape.entries:
        raise ValueError("draw: nothing was recorded on this tape")
    return Drawing(tape)


def _dot(tape: Tape) -> str:
    """The whole document."""
    boxes: dict[int, Entry | Leaf] = {**tape.entries, **tape.leaves}
    links = [(source, entry.number, place, name) for entry in tape.entries.values()
             for place, (name, source) in enumerate(_inputs(entry)) if source in boxes]
    chains = {number: [] if entry.call is None else entry.call.chain for number, entry in tape.entries.items()}
    users: dict[int, list[list[ModuleCall]]] = {}
    for source, target, _, _ in links:
        users.setdefault(source, []).append(chains[target])
    for number, leaf in tape.leaves.items():  # a parameter belongs to the module, an input comes from outside
        chains[number] = [] if leaf.name is None else _common(users.get(number, []))
    heat = _heat(boxes)
    labels = {number: _box(number, one, heat.get(number, "#ffffff")) for number, one in boxes.items()}
    lines = ['digraph "The recorded graph" {',
             '  graph [fontname="monospace", fontsize=11, labeljust=l, nodesep=0.2, ranksep=0.35];',
             '  node [shape=plain, fontname="monospace", fontsize=10];',
             '  edge [color="#57606a", arrowsize=0.6];',
             *_frame(sorted(boxes, key=abs), chains, labels, 0)]
    for source, target, place, name in links:
        tooltip = f"{_title(boxes[source])} → {name} of {_title(boxes[target])}"
        lines.append(f"  {_name(source)}:s -> {_name(target)}:in{place}:n [{_tooltip(tooltip)}];")
    return "\n".join([*lines, "}", ""])


def _inputs(entry: Entry) -> Iterator[tuple[str, int]]:
    """What enters an operation; where something was recorded in its place, the gradient goes through that."""
    recomputed = entry.name == "checkpoint"
    if not entry.expansions or not recomputed:
        yield from entry.parents
    for number in entry.expansions:
        yield "computed again" if recomputed else "composition", number


def _common(chains: list[list[ModuleCall]]) -> list[ModuleCall]:
    """The calls that all of `chains` begin with."""
    common: list[ModuleCall] = []
    for same in zip(*chains, strict=False):
        if any(call is not same[0] for call in same):
            break
        common.append(same[0])
    return common


def _frame(numbers: Iterable[int], chains: dict[int, list[ModuleCall]], labels: dict[int, str],
           depth: int) -> Iterator[str]:
    """The lines of a frame that is inside of `depth` others: its boxes, and the frames in it."""
    indent = "  " * (depth + 1)
    inner: dict[int, list[int]] = {}
    for number in numbers:
        if len(chains[number]) > depth:
            inner.setdefault(chains[number][depth].number, []).append(number)
        else:
            yield indent + labels[number]
    for within in inner.values():
        call = chains[within[0]][depth]
        yield f"{indent}subgraph cluster_{call.number} {{"
        yield (f"{indent}  label=<<b>{_escaped(call.name)}</b>>; {_tooltip(call.label)}; "
               'style="rounded,filled"; color="#8fa3c0"; fillcolor="#5b7fb812";')
        yield from _frame(within, chains, labels, depth + 1)
        yield f"{indent}}}"


def _box(number: int, one: Entry | Leaf, fill: str) -> str:
    """A table: a row of inputs, each with the port at which its edge ends, then the title and the details."""
    names = [name for name, _ in _inputs(one)] if isinstance(one, Entry) else []
    inputs = "".join(f'<td port="in{i}">{_escaped(name)}</td>' for i, name in enumerate(names))
    details = [f"{shape_text(one.shape)} {dtype_text(one.dtype)}"]
    if one.gradient_norm is not None:
        details.append(f"|g| {norm_text(one.gradient_norm)}")
    text = "<br/>".join([f'<font point-size="12"><b>{_escaped(_title(one))}</b></font>', *map(_escaped, details)])
    label = (f'<table cellborder="0" cellspacing="0" cellpadding="4" bgcolor="{fill}" '
             f"{OPERATION if isinstance(one, Entry) else LEAF}>{f'<tr>{inputs}</tr><hr/>' if inputs else ''}"
             f'<tr><td colspan="{max(1, len(names))}">{text}</td></tr></table>')
    return f"{_name(number)} [{_tooltip(_about(one))}, label=<{label}>];"


def _title(one: Entry | Leaf) -> str:
    return one.name if isinstance(one, Entry) else one.name.rpartition(".")[2] if one.name else "leaf"


def _about(one: Entry | Leaf) -> str:
    """What is shown where the mouse points."""
    if isinstance(one, Leaf):
        return one.name or "a leaf"
    return "\n".join([f"{one.name}, recorded as number {one.number}", *([] if one.line is None else [str(one.line)]),
                      *([] if one.call is None else [f"in {one.call.label}"])])


def _name(number: int) -> str:
    return f"n{number}" if number >= 0 else f"leaf{-number}"


def _heat(boxes: dict[int, Entry | Leaf]) -> dict[int, str]:
    """A colour for each box with a gradient: the larger its norm among all, the stronger, on a logarithmic scale."""
    norms = {number: one.gradient_norm for number, one in boxes.items()}
    logs = {number: math.log10(norm) for number, norm in norms.items() if norm and math.isfinite(norm)}
    if not logs:
        return {}
    top = max(logs.values())
    bottom = max(min(logs.values()), top - 4)  # four powers of ten are told apart; below, everything is faint
    colours = {}
    for number, log in logs.items():
        share = 0.04 + 0.36 * max(0.0, log - bottom) / ((top - bottom) or 1)  # of orange, the rest is white
        colours[number] = "#" + "".join(f"{round(255 - share * (255 - c)):02x}" for c in (232, 89, 12))
    return colours


def _escaped(text: str) -> str:
    """`text` on one line, as Graphviz takes it literally in markup, and as SVG can hold it."""
    printable = "".join(c if c.isprintable() else " " for c in text) or " "  # a label of no text is an error
    return escape(printable).replace("\\", "\\\\")


def _tooltip(text: str) -> str:
    """An attribute of DOT. Graphviz resolves the escapes of a tooltip twice: first ``\\n``, then such as ``\\N``."""
    lines = "\\n".join(_escaped(line).replace("\\", "\\\\") for line in text.split("\n"))
    return f'tooltip="{lines}"'
