"""`draw`: the recorded graph as a picture, to look at in a notebook or to save."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

from minigrad.inspect.dot import dot
from minigrad.inspect.graph import Picture, picture
from minigrad.inspect.recorder import Tape, tape
from minigrad.inspect.svg import svg


class Drawing:
    """A recorded graph, laid out. A notebook shows it.

    Attributes:
        picture: boxes, frames and edges with their coordinates.
    """

    def __init__(self, drawn: Tape, depth: int | None = None) -> None:
        self.picture: Picture = picture(drawn, depth)

    @cached_property
    def svg(self) -> str:
        """An SVG document that needs nothing else."""
        boxes = self.picture.boxes
        kinds = Counter(box.kind for box in boxes)
        leaves = sorted(box.tooltip for box in boxes if box.kind == "leaf")
        modules = f" and {kinds['module']} modules" if kinds["module"] else ""
        said = (f"{kinds['op']} operations{modules} from {len(leaves)} leaves ({', '.join(leaves[:12])}"
                f"{', …' if len(leaves) > 12 else ''}), downwards, in the order of computation. Rounded boxes are "
                "leaves; each box of an operation names its inputs at its top.")
        if any(box.norm is not None for box in boxes):
            said += " |g| is the norm of the gradient; the larger, the stronger the colour."
        return svg(self.picture, said)

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
        root = self.picture.root
        return (f"<Drawing of {len(self.picture.boxes)} boxes, {root.width:.0f}×{root.height:.0f}; "
                "save('graph.svg') writes it>")


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
