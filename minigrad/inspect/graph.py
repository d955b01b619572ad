"""The recorded graph as a picture: boxes, and frames for the modules that they ran in, all with their places.

The frame of each call of a module is laid out first, from the innermost outwards, and is then one item of what is
around it; an edge that crosses a frame does so at a port, which is an item at the frame's upper or lower side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from minigrad.inspect.boxes import CHARACTER, Box, Edge, boxes_and_edges
from minigrad.inspect.layout import CycleError, Item, Link, Point, arrange
from minigrad.inspect.modules import ModuleCall
from minigrad.inspect.recorder import Tape
from minigrad.inspect.table import text_width

MARGIN = 12.0


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


@dataclass
class Picture:
    """All that there is to draw, with its coordinates."""

    root: Frame
    boxes: list[Box]
    frames: list[Frame]
    edges: list[Edge]


def picture(tape: Tape, depth: int | None = None) -> Picture:
    """Lay out what is on a tape; calls of modules that are in `depth` others are one box each."""
    boxes, edges = boxes_and_edges(tape, depth)
    root = _frames(boxes)
    try:
        _lay_out(root, edges)
    except CycleError:  # calls of modules that ran interleaved, as asynchronous ones can: no frames, none collapsed
        boxes, edges = boxes_and_edges(tape, None)
        root = Frame(None, "", boxes)
        _lay_out(root, edges)
    frames = [frame for frame in _walk(root) if frame is not root]
    return Picture(root, boxes, frames, edges)


def _frames(boxes: list[Box]) -> Frame:
    root = Frame(None, "")
    by_call: dict[int, Frame] = {}
    for box in sorted(boxes, key=lambda box: abs(box.number)):
        frame = root
        for call in box.call.chain if box.call is not None else []:
            if call.number not in by_call:
                by_call[call.number] = Frame(call, call.name)
                frame.frames.append(by_call[call.number])
            frame = by_call[call.number]
        frame.boxes.append(box)
    return root


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
