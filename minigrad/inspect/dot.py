"""A picture of the graph in Graphviz's language DOT, for those who have it; Graphviz makes the layout."""

from __future__ import annotations

from collections.abc import Iterator

from minigrad.inspect.graph import Frame, Picture


def quoted(text: str) -> str:
    """A string of DOT."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def dot(picture: Picture) -> str:
    """The whole document."""
    lines = ["digraph recorded {", '  node [shape=box, fontname="monospace", fontsize=11];',
             '  edge [fontname="monospace", fontsize=9];', *_frame(picture.root, "  ")]
    for edge in picture.edges:
        label = quoted(edge.target.inputs[edge.place])
        lines.append(f"  {_name(edge.source.number)} -> {_name(edge.target.number)} [label={label}];")
    return "\n".join([*lines, "}", ""])


def _name(number: int) -> str:
    return f"n{number}" if number >= 0 else f"leaf{-number}"


def _frame(frame: Frame, indent: str) -> Iterator[str]:
    for box in frame.boxes:
        label = quoted("\n".join([box.title, *box.details]))
        style = ', style="rounded,filled", fillcolor="#dcf3e4"' if box.kind == "leaf" else ""
        yield f"{indent}{_name(box.number)} [label={label}, tooltip={quoted(box.tooltip)}{style}];"
    for inner in frame.frames:
        number = 0 if inner.call is None else inner.call.number
        yield f"{indent}subgraph cluster_{number} {{"
        yield f'{indent}  label={quoted(inner.title)}; labeljust=l; style=rounded; fontname="monospace";'
        yield from _frame(inner, indent + "  ")
        yield f"{indent}}}"
