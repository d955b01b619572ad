"""What a picture of the graph shows: boxes for operations, leaves and collapsed modules, and edges between them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from minigrad.inspect.entry import Entry, Leaf
from minigrad.inspect.layout import Point
from minigrad.inspect.listing import dtype_text, norm_text
from minigrad.inspect.modules import ModuleCall
from minigrad.inspect.recorder import Tape
from minigrad.inspect.table import shape_text, text_width

CHARACTER = 7.3  # the width of a character of a monospaced font at 12 px, rounded up
SMALL = 6.1  # and at 10 px


@dataclass(eq=False)
class Box:
    """An operation ("op"), a leaf or a collapsed module, placed. `ports` are the offsets at which its inputs enter."""

    kind: str
    number: int
    title: str
    details: list[str]
    inputs: list[str]
    norm: float | None
    tooltip: str
    call: ModuleCall | None = None
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0
    y: float = 0.0
    ports: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Its size, from its texts."""
        strips = [SMALL * text_width(name) + 8 for name in self.inputs]
        texts = [CHARACTER * text_width(self.title), *[SMALL * text_width(text) for text in self.details]]
        self.width = max(sum(strips), max(texts) + 16)
        self.height = (14 if self.inputs else 0) + 20 + 13 * len(self.details)
        left = (self.width - sum(strips)) / 2
        for strip in strips:
            self.ports.append(left + strip / 2)
            left += strip


@dataclass(eq=False)
class Edge:
    """From the output of one box into the `place`-th input of another."""

    source: Box
    target: Box
    place: int
    path: list[Point] = field(default_factory=list)


@dataclass
class _Group:
    """A call of a module that is drawn as one box: what is in it, what enters it and what leaves it, by number."""

    call: ModuleCall
    entries: list[Entry] = field(default_factory=list)
    parameters: list[Leaf] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)


def boxes_and_edges(tape: Tape, depth: int | None) -> tuple[list[Box], list[Edge]]:
    """What is on a tape; calls of modules that are in `depth` others are one box each."""
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
    return boxes, list(edges.values())


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
