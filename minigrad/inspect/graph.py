"""The recorded graph as a picture: `draw` reads boxes, edges and frames from a tape, and Graphviz lays them out.

A box is an operation, a leaf or the call of a module that is drawn whole; an edge leads from a value to the input that
it enters; a frame is the call of a module, around all that ran in it. They are written in Graphviz's language DOT, as
text, which needs no package. Drawing that text as SVG needs the package pygraphviz, which brings Graphviz with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from minigrad.inspect.modules import ModuleCall
from minigrad.inspect.recorder import Entry, Leaf, Tape, dtype_text, norm_text, tape
from minigrad.inspect.table import shape_text


@dataclass(eq=False, repr=False)
class Box:
    """An operation, a leaf or the call of a module.

    Attributes:
        kind: "op", "leaf" or "module".
        number: of the entry or leaf; of a module, of the last entry in it.
        title, details: the lines of text in the box.
        inputs: the names of its inputs; of a module, their shapes.
        norm: the norm of the gradient of its output, the largest if a module has several; None before a backward.
        tooltip: the text that appears where the mouse points.
        call: the call of a module that it stands in.
    """

    kind: str
    number: int
    title: str
    details: list[str]
    inputs: list[str]
    norm: float | None
    tooltip: str
    call: ModuleCall | None

    def __repr__(self) -> str:
        return f"<Box {self.number}: {self.title}>"


@dataclass(eq=False)
class Edge:
    """From the output of one box into the `place`-th input of another."""

    source: Box
    target: Box
    place: int


@dataclass(eq=False, repr=False)
class Frame:
    """A call of a module, around its boxes and the frames of the calls in it; the outermost frame has no call."""

    call: ModuleCall | None
    boxes: list[Box] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The name of the module."""
        return "" if self.call is None else self.call.name

    def __repr__(self) -> str:
        return f"<Frame {self.title!r}: {len(self.boxes)} boxes, {len(self.frames)} frames>"


@dataclass(repr=False)
class Picture:
    """All that there is to draw: `root` holds every box and every frame, directly or in another frame."""

    root: Frame
    boxes: list[Box]
    frames: list[Frame]
    edges: list[Edge]

    def __repr__(self) -> str:
        return f"<Picture of {len(self.boxes)} boxes, {len(self.edges)} edges>"


class Drawing:
    """A picture of a recorded graph. A notebook shows it.

    Attributes:
        picture: the boxes, frames and edges, as data.
    """

    def __init__(self, drawn: Tape, depth: int | None = None) -> None:
        self.picture: Picture = picture(drawn, depth)

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

    @cached_property
    def dot(self) -> str:
        """The graph in the language of Graphviz."""
        return dot(self.picture)

    def save(self, path: str | Path) -> None:
        """Write to a file; its name ends in ``.svg`` or ``.dot``. ValueError for any other."""
        texts = {".svg": "svg", ".dot": "dot", ".gv": "dot"}
        path = Path(path)
        if path.suffix not in texts:
            raise ValueError(f"save: the name must end in .svg, .dot or .gv, got {path.name!r}")
        path.write_text(getattr(self, texts[path.suffix]), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Drawing of {len(self.picture.boxes)} boxes; save('graph.svg') writes it>"


def draw(graph: Any, model: Any = None, *, depth: int | None = None) -> Drawing:
    """Draw what a tensor was computed from, or what is on a tape.

    Args:
        graph: a recorded tensor; or a `Tape` from `record_tape`, which also knows the modules (drawn as frames), the
            lines (shown where the mouse points) and, after a backward inside the block, the gradients of all boxes.
            Of a tensor, none of that is known.
        model: a module whose names its parameters get, where `graph` is a tensor.
        depth: draw modules that are within `depth` others as one box each, with their number of parameters and the
            gradient norms of what goes in and what comes out: 0 for the outermost alone, 1 for what is in them.
            None draws every operation.

    Raises:
        TypeError: neither a tensor nor a tape; a depth that is no integer.
        ValueError: nothing was recorded; a negative depth, or one for a tensor.
    """
    if depth is not None:
        if not isinstance(depth, int) or isinstance(depth, bool):
            raise TypeError(f"draw: depth must be an integer or None, got {depth!r}")
        if depth < 0:
            raise ValueError(f"draw: depth must be at least 0, got {depth}")
        if not isinstance(graph, Tape):
            raise ValueError("draw: depth needs a tape from record_tape(), which sees the modules; a tensor does not "
                             "know in which it was computed")
    drawn = graph if isinstance(graph, Tape) else tape(graph, model)
    if not drawn.entries:
        raise ValueError("draw: nothing was recorded on this tape")
    return Drawing(drawn, depth)


# ----------------------------------------------------------------- from the tape to boxes, edges and frames


@dataclass
class _Group:
    """A call of a module that is drawn as one box: what is in it, what enters it and what leaves it, by number."""

    call: ModuleCall
    entries: list[Entry] = field(default_factory=list)
    parameters: list[Leaf] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)


def picture(tape: Tape, depth: int | None = None) -> Picture:
    """What is on a tape, as boxes, edges and frames; calls of modules that are in `depth` others are one box each."""
    known = {*tape.entries, *tape.leaves}
    links = [(source, entry.number, place) for entry in tape.entries.values()
             for place, (_, source) in enumerate(_inputs(entry)) if source in known]
    calls = {number: entry.call for number, entry in tape.entries.items()}
    users: dict[int, list[ModuleCall | None]] = {number: [] for number in tape.leaves}
    for source, target, _ in links:
        if source in users:
            users[source].append(calls[target])
    for number, leaf in tape.leaves.items():  # a parameter belongs to the module, an input comes from outside
        calls[number] = None if leaf.name is None else _common_call(users[number])

    groups: dict[int, _Group] = {}  # by the number of the call
    group_of: dict[int, _Group] = {}  # by the number of what is in it
    for number, call in calls.items():
        if call is not None and depth is not None and len(call.chain) > depth:
            whole = call.chain[depth]
            group = group_of[number] = groups.setdefault(whole.number, _Group(whole))
            if number in tape.entries:
                group.entries.append(tape.entries[number])
            else:
                group.parameters.append(tape.leaves[number])
    for source, target, _ in links:
        origin, goal = group_of.get(source), group_of.get(target)
        if origin is goal:
            continue
        if origin is not None and source not in origin.results:
            origin.results.append(source)
        if goal is not None and source not in goal.sources:
            goal.sources.append(source)

    box_of = {number: _operation_box(entry) for number, entry in tape.entries.items() if number not in group_of}
    box_of |= {number: _leaf_box(leaf, calls[number]) for number, leaf in tape.leaves.items() if number not in group_of}
    boxes = list(box_of.values())
    for group in groups.values():
        boxes.append(_module_box(group, tape))
        box_of |= dict.fromkeys([*[entry.number for entry in group.entries],
                                 *[leaf.number for leaf in group.parameters]], boxes[-1])
    edges: dict[tuple[int, int, int], Edge] = {}  # what enters a module several times is one edge
    for source, target, place in links:
        if box_of[source] is not box_of[target]:
            goal = group_of.get(target)
            port = place if goal is None else goal.sources.index(source)
            edges.setdefault((source, box_of[target].number, port), Edge(box_of[source], box_of[target], port))
    root, *frames = _frames(boxes)
    return Picture(root, boxes, frames, list(edges.values()))


def _inputs(entry: Entry) -> Iterator[tuple[str, int]]:
    """What enters an operation; where something was recorded in its place, the gradient goes through that."""
    recomputed = entry.name == "checkpoint"
    if not entry.expansions or not recomputed:
        yield from entry.parents
    for number in entry.expansions:
        yield "computed again" if recomputed else "composition", number


def _common_call(calls: list[ModuleCall | None]) -> ModuleCall | None:
    """The innermost call that all of `calls` are in."""
    common: ModuleCall | None = None
    for same in zip(*[[] if call is None else call.chain for call in calls], strict=False):
        if any(call is not same[0] for call in same):
            break
        common = same[0]
    return common


def _frames(boxes: Sequence[Box]) -> list[Frame]:
    """The frames around the boxes, the outermost first."""
    root = Frame(None)
    by_call: dict[int, Frame] = {}
    for box in sorted(boxes, key=lambda box: abs(box.number)):
        frame = root
        for call in box.call.chain if box.call is not None else []:
            if call.number not in by_call:
                by_call[call.number] = Frame(call)
                frame.frames.append(by_call[call.number])
            frame = by_call[call.number]
        frame.boxes.append(box)
    return [root, *by_call.values()]


def _operation_box(entry: Entry) -> Box:
    tooltip = [f"{entry.name}, recorded as number {entry.number}"]
    if entry.line is not None:
        tooltip.append(f"{'/'.join(Path(entry.line.file).parts[-2:])}:{entry.line.number} {entry.line.source}")
    if entry.call is not None:
        tooltip.append(f"in {entry.call.label}")
    return Box("op", entry.number, entry.name, _details(entry), [name for name, _ in _inputs(entry)],
               entry.gradient_norm, "\n".join(tooltip), entry.call)


def _leaf_box(leaf: Leaf, call: ModuleCall | None) -> Box:
    short = leaf.name.rpartition(".")[2] if leaf.name else "leaf"
    return Box("leaf", leaf.number, short, _details(leaf), [], leaf.gradient_norm, leaf.name or "a leaf", call)


def _details(one: Entry | Leaf) -> list[str]:
    norm = one.gradient_norm
    return [f"{shape_text(one.shape)} {dtype_text(one.dtype)}", *([] if norm is None else [f"|g| {norm_text(norm)}"])]


def _module_box(group: _Group, tape: Tape) -> Box:
    """Its inputs are named by their shapes; ``|g| in`` are the norms of their gradients, ``out`` of its outputs'."""
    call, last = group.call, max(entry.number for entry in group.entries)
    results = [tape.entries[number] for number in group.results or [last] if number in tape.entries]
    sources = [tape.entries.get(number) or tape.leaves[number] for number in group.sources]
    details = [call.kind] if call.kind != call.name else []
    details.append("→ " + " ".join(f"{shape_text(one.shape)} {dtype_text(one.dtype)}" for one in results))
    count = sum(math.prod(leaf.shape) for leaf in group.parameters)
    if count:
        details.append(f"{count:,} parameters")
    for side, parts in (("in", sources), ("out", results)):
        if any(one.gradient_norm is not None for one in parts):
            details.append(f"|g| {side} " + " ".join(norm_text(one.gradient_norm) or "–" for one in parts))
    norms = [one.gradient_norm for one in results if one.gradient_norm is not None]
    tooltip = f"{call.label}: {len(group.entries)} operations, recorded as numbers up to {last}"
    return Box("module", last, call.name, details, [shape_text(one.shape) for one in sources],
               max(norms) if norms else None, tooltip, call.outer)


# ----------------------------------------------------------------- from boxes, edges and frames to DOT

BORDERS = {"op": 'border="1" color="#6e7781"', "leaf": 'border="2" style="rounded" color="#2f8f57"',
           "module": 'border="2" style="rounded" color="#5b7fb8"'}


def dot(picture: Picture) -> str:
    """The whole document."""
    heat = _heat(picture.boxes)
    lines = ['digraph "The recorded graph" {',
             '  graph [fontname="monospace", fontsize=11, labeljust=l, nodesep=0.2, ranksep=0.35];',
             '  node [shape=plain, fontname="monospace", fontsize=10];',
             '  edge [color="#57606a", arrowsize=0.6];',
             *_frame_lines(picture.root, heat, "  ")]
    for edge in picture.edges:
        tooltip = f"{edge.source.title} → {edge.target.inputs[edge.place]} of {edge.target.title}"
        lines.append(f"  {_name(edge.source)}:s -> {_name(edge.target)}:in{edge.place}:n [{_tooltip(tooltip)}];")
    return "\n".join([*lines, "}", ""])


def _frame_lines(frame: Frame, heat: dict[int, str], indent: str) -> Iterator[str]:
    for box in frame.boxes:
        label = _label(box, heat.get(box.number, "#ffffff"))
        yield f"{indent}{_name(box)} [{_tooltip(box.tooltip)}, label=<{label}>];"
    for inner in frame.frames:
        if inner.call is not None:
            yield f"{indent}subgraph cluster_{inner.call.number} {{"
            yield (f"{indent}  label=<<b>{_escaped(inner.title)}</b>>; {_tooltip(inner.call.label)}; "
                   'style="rounded,filled"; color="#8fa3c0"; fillcolor="#5b7fb812";')
            yield from _frame_lines(inner, heat, indent + "  ")
            yield f"{indent}}}"


def _label(box: Box, fill: str) -> str:
    """A table: a row of inputs, each with the port at which its edge ends, then the title and the details."""
    whole = f'colspan="{max(1, len(box.inputs))}"'
    inputs = "".join(f'<td port="in{i}">{_escaped(name)}</td>' for i, name in enumerate(box.inputs))
    text = "<br/>".join([f'<font point-size="12"><b>{_escaped(box.title)}</b></font>', *map(_escaped, box.details)])
    return (f'<table cellborder="0" cellspacing="0" cellpadding="4" bgcolor="{fill}" {BORDERS[box.kind]}>'
            f"{f'<tr>{inputs}</tr><hr/>' if inputs else ''}<tr><td {whole}>{text}</td></tr></table>")


def _name(box: Box) -> str:
    return f"n{box.number}" if box.number >= 0 else f"leaf{-box.number}"


def _heat(boxes: Sequence[Box]) -> dict[int, str]:
    """A colour for each box with a gradient: the larger its norm among all, the stronger, on a logarithmic scale."""
    logs = {box.number: math.log10(box.norm) for box in boxes if box.norm and math.isfinite(box.norm)}
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
