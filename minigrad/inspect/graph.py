"""The recorded graph as a picture: boxes for operations and leaves, frames for the modules that they ran in.

The frame of each call of a module is laid out first, from the innermost outwards, and is then one item of what is
around it; an edge that crosses a frame does so at a port, which is an item at the frame's upper or lower side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from minigrad.inspect.entry import Entry, Leaf
from minigrad.inspect.layout import CycleError, Item, Link, Point, arrange
from minigrad.inspect.listing import dtype_text, leaf_gradient_norm, norm_text
from minigrad.inspect.modules import ModuleCall
from minigrad.inspect.recorder import Tape
from minigrad.inspect.table import shape_text, text_width

CHARACTER = 7.3  # the width of a character of a monospaced font at 12 px, rounded up
SMALL = 6.1  # and at 10 px
MARGIN = 12.0


@dataclass(eq=False)
class Box:
    """An operation or a leaf, placed. `lines` are the texts in it, `ports` the offsets at which its inputs enter."""

    number: int
    title: str
    details: list[str]
    inputs: list[str]
    is_leaf: bool
    norm: float | None
    tooltip: str
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0
    y: float = 0.0
    ports: list[float] = field(default_factory=list)


@dataclass(eq=False)
class Frame:
    """A call of a module, around its boxes and the frames of the calls in it."""

    call: ModuleCall | None
    title: str
    boxes: list[Box] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0

    @property
    def parts(self) -> list[Box | Frame]:
        """The boxes and frames right inside it."""
        return [*self.boxes, *self.frames]


@dataclass(eq=False)
class Edge:
    """From the output of one box into the `place`-th input of another."""

    source: Box
    target: Box
    place: int
    path: list[Point] = field(default_factory=list)


@dataclass
class Picture:
    """All that there is to draw, with its coordinates."""

    root: Frame
    boxes: list[Box]
    frames: list[Frame]
    edges: list[Edge]


def picture(tape: Tape) -> Picture:
    """Lay out what is on a tape."""
    boxes = {number: _operation_box(entry) for number, entry in tape.entries.items()}
    boxes |= {number: _leaf_box(leaf) for number, leaf in tape.leaves.items()}
    edges = [Edge(boxes[number], boxes[entry.number], place) for entry in tape.entries.values()
             for place, (_, number) in enumerate(entry.parents) if number in boxes]
    calls: dict[int, ModuleCall | None] = {number: entry.call for number, entry in tape.entries.items()}
    for number, leaf in tape.leaves.items():  # a parameter belongs to the module, an input comes from outside
        users = [calls[edge.target.number] for edge in edges if edge.source.number == number]
        calls[number] = None if leaf.name is None else _common_call(users)
    root = _frames(boxes, calls)
    try:
        _lay_out(root, edges)
    except CycleError:  # calls of modules that ran interleaved, as asynchronous ones can: no frames
        root = _frames(boxes, dict.fromkeys(calls))
        _lay_out(root, edges)
    frames = [frame for frame in _walk(root) if frame is not root]
    return Picture(root, list(boxes.values()), frames, edges)


# ----------------------------------------------------------------- boxes


def _operation_box(entry: Entry) -> Box:
    details = [f"{shape_text(entry.shape)} {dtype_text(entry.dtype)}"]
    norm = entry.gradient_norm
    tooltip = [f"{entry.name}, recorded as number {entry.number}"]
    if entry.line is not None:
        tooltip.append(f"{'/'.join(Path(entry.line.file).parts[-2:])}:{entry.line.number} {entry.line.source}")
    if entry.call is not None:
        tooltip.append(f"in {entry.call.path} ({entry.call.kind})")
    return _sized(Box(entry.number, entry.name, details, [name for name, _ in entry.parents], False, norm,
                      "\n".join(tooltip)))


def _leaf_box(leaf: Leaf) -> Box:
    short = leaf.name.rpartition(".")[2] if leaf.name else "leaf"
    details = [f"{shape_text(leaf.shape)} {dtype_text(leaf.dtype)}"]
    return _sized(Box(leaf.number, short, details, [], True, leaf_gradient_norm(leaf), leaf.name or "a leaf"))


def _sized(box: Box) -> Box:
    if box.norm is not None:
        box.details.append(f"|g| {norm_text(box.norm)}")
    strips = [SMALL * text_width(name) + 8 for name in box.inputs]
    texts = [CHARACTER * text_width(box.title), *[SMALL * text_width(text) for text in box.details]]
    box.width = max(sum(strips), max(texts) + 16)
    box.height = (14 if box.inputs else 0) + 20 + 13 * len(box.details)
    spare, x = (box.width - sum(strips)) / max(len(strips), 1), 0.0
    for strip in strips:
        box.ports.append(x + (strip + spare) / 2)
        x += strip + spare
    return box


# ----------------------------------------------------------------- frames


def _chain(call: ModuleCall | None) -> list[ModuleCall]:
    """The calls around, the outermost first."""
    chain = []
    while call is not None:
        chain.append(call)
        call = call.outer
    return chain[::-1]


def _common_call(calls: list[ModuleCall | None]) -> ModuleCall | None:
    """The innermost call that all of `calls` are in."""
    common: ModuleCall | None = None
    for same in zip(*map(_chain, calls), strict=False):
        if any(call is not same[0] for call in same):
            break
        common = same[0]
    return common


def _frames(boxes: dict[int, Box], calls: dict[int, ModuleCall | None]) -> Frame:
    root = Frame(None, "")
    by_call: dict[int, Frame] = {}
    for number, box in sorted(boxes.items(), key=lambda pair: abs(pair[0])):
        frame = root
        for call in _chain(calls[number]):
            if call.number not in by_call:
                by_call[call.number] = Frame(call, _title(call))
                frame.frames.append(by_call[call.number])
            frame = by_call[call.number]
        frame.boxes.append(box)
    return root


def _title(call: ModuleCall) -> str:
    """The path of a module, from the nearest one around it that it is a part of."""
    outer = call.outer
    while outer is not None:
        if call.path.startswith(outer.path + "."):
            return call.path.removeprefix(outer.path + ".")
        outer = outer.outer
    return call.path


def _walk(frame: Frame) -> Iterator[Frame]:
    yield frame
    for inner in frame.frames:
        yield from _walk(inner)


# ----------------------------------------------------------------- layout


def _lay_out(root: Frame, edges: list[Edge]) -> None:
    at: dict[int, list[Frame]] = {}  # by the id of a box: the frames around it, the root first

    def locate(frame: Frame, around: list[Frame]) -> None:
        for box in frame.boxes:
            at[id(box)] = [*around, frame]
        for inner in frame.frames:
            locate(inner, [*around, frame])

    locate(root, [])
    ports: dict[tuple[int, int, str], float] = {}  # where an edge crosses a frame, from the frame's left side
    pieces: dict[int, list[tuple[Frame, list[Point]]]] = {id(edge): [] for edge in edges}
    for frame in reversed(list(_walk(root))):  # inner frames come after those around them
        _lay_out_frame(frame, frame is root, edges, at, ports, pieces)

    def settle(frame: Frame) -> None:
        for part in frame.parts:
            part.x, part.y = part.x + frame.x, part.y + frame.y
        for inner in frame.frames:
            settle(inner)

    settle(root)
    for edge in edges:
        points = [(x + frame.x, y + frame.y) for frame, part in pieces[id(edge)] for x, y in part]
        edge.path = sorted(points, key=lambda point: point[1])


def _lay_out_frame(frame: Frame, is_root: bool, edges: list[Edge], at: dict[int, list[Frame]],
                   ports: dict[tuple[int, int, str], float],
                   pieces: dict[int, list[tuple[Frame, list[Point]]]]) -> None:
    items: dict[int, Item] = {id(part): Item(part.width, part.height) for part in frame.parts}
    title = Item(CHARACTER * text_width(frame.title) + 6, 12.0, "title")
    extra = [] if is_root else [title]
    links = []
    for edge in edges:
        parts = [_part(frame, box, at[id(box)]) for box in (edge.source, edge.target)]
        if parts[0] is parts[1]:
            continue  # it stays outside, or within an inner frame
        ends = []
        for part, side in zip(parts, ("out", "in"), strict=True):
            if part is None:  # it comes or goes through a side of this frame
                extra.append(Item(2.0, 0.0, "top" if side == "out" else "bottom"))
                ends.append((extra[-1], 1.0))
            elif isinstance(part, Frame):
                ends.append((items[id(part)], ports[id(edge), id(part), side]))
            else:
                ends.append((items[id(part)], part.width / 2 if side == "out" else part.ports[edge.place]))
        links.append((edge, parts, Link(ends[0][0], ends[1][0], ends[0][1], ends[1][1])))
    placed = [*items.values(), *extra]
    width, height = arrange(placed, [link for _, _, link in links])
    margin = 0.0 if is_root else MARGIN
    above = 0.0 if is_root else 6.0
    frame.width, frame.height = width + 2 * margin, height + above + margin
    for placed_part in frame.parts:
        item = items[id(placed_part)]
        placed_part.x, placed_part.y = item.x + margin, item.y + above
    for edge, parts, link in links:
        points = [(x + margin, y + above) for x, y in link.points]
        if parts[0] is None:
            ports[id(edge), id(frame), "in"] = points[0][0]
            points = [(points[0][0], 0.0), *points]
        if parts[1] is None:
            ports[id(edge), id(frame), "out"] = points[-1][0]
            points = [*points, (points[-1][0], frame.height)]
        pieces[id(edge)].append((frame, points))


def _part(frame: Frame, box: Box, around: list[Frame]) -> Box | Frame | None:
    """What of `frame` holds `box`: itself, or a frame in it; None if it is outside."""
    if frame not in around:
        return None
    place = around.index(frame) + 1
    return box if place == len(around) else around[place]
