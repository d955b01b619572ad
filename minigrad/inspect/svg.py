"""A picture of the graph as SVG: self-contained, for light and dark backgrounds, its text selectable."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from minigrad.inspect.boxes import Box, Edge
from minigrad.inspect.graph import Frame, Picture
from minigrad.inspect.layout import Point

PADDING = 12.0
LEVELS = 6

# Only plain rules, without variables: drawing programs and converters read them as well as browsers do.
_STYLE = """\
.mg text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1b1f24}
.mg .title{font-size:12px;font-weight:600;text-anchor:middle}
.mg .detail{font-size:10px;text-anchor:middle}
.mg .input{font-size:10px;text-anchor:middle;fill:#57606a}
.mg .path{font-size:11px;font-weight:600;fill:#57606a}
.mg .back{fill:#ffffff}
.mg .box{fill:#ffffff;stroke:#6e7781;stroke-width:1}
.mg .leaf .box{stroke:#2f8f57;stroke-width:2}
.mg .module .box{stroke:#5b7fb8;stroke-width:2}
.mg .frame{fill:#5b7fb8;fill-opacity:.07;stroke:#8fa3c0;stroke-width:1}
.mg .strip{stroke:#6e7781;stroke-width:.5;fill:none}
.mg .edge{fill:none;stroke:#57606a;stroke-width:1.1}
.mg .head{fill:#57606a}
.mg .heat{fill:#e8590c}
@media (prefers-color-scheme:dark){
.mg text{fill:#e6edf3}
.mg .input,.mg .path{fill:#9aa4af}
.mg .back{fill:#12161c}
.mg .box{fill:#1d232b;stroke:#8b949e}
.mg .leaf .box{stroke:#4fae7c}
.mg .module .box{stroke:#7fa2d8}
.mg .frame{fill:#7fa2d8;fill-opacity:.09;stroke:#4d6488}
.mg .strip{stroke:#8b949e}
.mg .edge{stroke:#9aa4af}
.mg .head{fill:#9aa4af}
}
"""


def svg(picture: Picture, description: str) -> str:
    """The whole document."""
    width, height = picture.root.width + 2 * PADDING, picture.root.height + 2 * PADDING
    heat = _heat(picture.boxes)
    box = f"{-PADDING:g} {-PADDING:g} {width:.1f} {height:.1f}"
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" class="mg" role="img"',
             f'  width="{width:.0f}" height="{height:.0f}" viewBox="{box}">',
             "<title>The recorded graph</title>", f"<desc>{escape(description)}</desc>", f"<style>{_STYLE}</style>",
             f'<rect class="back" x="{-PADDING:g}" y="{-PADDING:g}" width="{width:.1f}" height="{height:.1f}"/>']
    for frame in picture.frames:
        lines += _frame(frame)
    for edge in picture.edges:
        lines += _edge(edge)
    for one in picture.boxes:
        lines += _box(one, heat.get(one.number, 0.0))
    return "\n".join([*lines, "</svg>", ""])


def _heat(boxes: Sequence[Box]) -> dict[int, float]:
    """How strongly a box is coloured: the larger its gradient among all, on a logarithmic scale, in steps."""
    logs = {box.number: math.log10(box.norm) for box in boxes if box.norm and math.isfinite(box.norm)}
    if not logs:
        return {}
    top = max(logs.values())
    bottom = max(min(logs.values()), top - 4)  # four powers of ten are told apart; below, everything is faint
    steps = {number: round(LEVELS * max(0.0, log - bottom) / ((top - bottom) or 1)) for number, log in logs.items()}
    return {number: 0.04 + 0.36 * step / LEVELS for number, step in steps.items()}


def _frame(frame: Frame) -> Iterator[str]:
    name = "" if frame.call is None else frame.call.label
    yield (f'<g><title>{escape(name)}</title><rect class="frame" x="{frame.x:.1f}" y="{frame.y:.1f}" '
           f'width="{frame.width:.1f}" height="{frame.height:.1f}" rx="9"/>'
           f'<text class="path" x="{frame.x + 10:.1f}" y="{frame.y + 16:.1f}">{escape(frame.title)}</text></g>')


def _box(box: Box, heat: float) -> Iterator[str]:
    middle, rounding = box.x + box.width / 2, {"leaf": 13, "module": 9, "op": 4}[box.kind]
    rect = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{rounding}"'
    yield f'<g class="{box.kind}"><title>{escape(box.tooltip)}</title>'
    yield f'<rect class="box" {rect}/>'
    if heat:
        yield f'<rect class="heat" fill-opacity="{heat:.2f}" {rect}/>'
    y = box.y
    if box.inputs:
        yield f'<path class="strip" d="M{box.x:.1f},{y + 14:.1f}h{box.width:.1f}"/>'
        for name, offset in zip(box.inputs, box.ports, strict=True):
            yield f'<text class="input" x="{box.x + offset:.1f}" y="{y + 10.5:.1f}">{escape(name)}</text>'
        y += 14
    yield f'<text class="title" x="{middle:.1f}" y="{y + 15:.1f}">{escape(box.title)}</text>'
    for i, text in enumerate(box.details):
        yield f'<text class="detail" x="{middle:.1f}" y="{y + 28 + 13 * i:.1f}">{escape(text)}</text>'
    yield "</g>"


def curve(path: Sequence[Point]) -> str:
    """A path that never goes up: straight where two points are above one another, else an S from one to the other."""
    (x, y), *rest = path
    commands = [f"M{x:.1f},{y:.1f}"]
    for to_x, to_y in rest:
        if abs(to_x - x) < 0.05:
            if to_y - y >= 0.05:
                commands.append(f"V{to_y:.1f}")
        else:
            middle = (y + to_y) / 2
            commands.append(f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}")
        x, y = to_x, to_y
    return "".join(commands)


def _edge(edge: Edge) -> Iterator[str]:
    x, y = edge.path[-1]
    names = f"{edge.source.title} → {edge.target.inputs[edge.place]} of {edge.target.title}"
    yield (f'<g><title>{escape(names)}</title><path class="edge" d="{curve(edge.path)}"/>'
           f'<path class="head" d="M{x:.1f},{y:.1f}l-3,-6h6z"/></g>')
