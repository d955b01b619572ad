"""The recorded graph as a picture: `draw` writes it in Graphviz's language DOT, and Graphviz lays it out.

A box is an operation or a leaf; an edge leads from a value to the input that it enters; a frame is the call of a
module, around all that ran in it. DOT is text, which needs no package. Drawing that text as SVG needs the package
pygraphviz, which brings Graphviz with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from minigrad.inspect.tape import Tape, norm_of, norm_text


@dataclass(repr=False)
class Drawing:
    """A picture of a recorded graph. A notebook shows it.

    Attributes:
        dot: the graph in the language of Graphviz.
    """

    dot: str

    def _repr_svg_(self) -> str:
        """An SVG document that refers to no other file. ImportError without pygraphviz."""
        try:
            import pygraphviz
        except ImportError as error:
            raise ImportError("drawing the graph needs the package 'pygraphviz', from  pip install "
                              "'minigrad-transformer[draw]'; as .dot it needs none") from error
        document = pygraphviz.AGraph(string=self.dot).draw(format="svg", prog="dot").decode()
        return document[document.index("<svg"):]  # without the prolog, it can stand inside a page as well

    def save(self, path: str | Path) -> None:
        """Write to a file: as DOT if its name ends in ``.dot``, else as SVG."""
        Path(path).write_text(self.dot if Path(path).suffix == ".dot" else self._repr_svg_(), encoding="utf-8")


def draw(tape: Tape) -> Drawing:
    """Draw what is on a tape from `record_tape`, with its modules as frames.

    The lines of the program are shown where the mouse points. After a backward, the boxes have the norms of their
    gradients.
    """
    lines = ["digraph {", 'node [shape=box, style="rounded,filled", fillcolor=white, fontname=monospace, fontsize=10];',
             'edge [color="#57606a", fontname=monospace, fontsize=8]; graph [fontname=monospace, fontsize=11];']
    for number, leaf in tape.leaves.items():
        name = tape.name_of(number)
        lines.append(_box(number, name.rpartition(".")[2] or "leaf", leaf, norm_of(leaf.grad), name))
    for number, entry in tape.entries.items():
        lines += [f'subgraph "cluster{id(call)}" {{ label={_quoted(call.name)}; style=rounded; color="#8fa3c0";'
                  for call in entry.modules]  # each may be opened again and again
        lines += [_box(number, entry.name, entry, entry.gradient_norm, f"{entry.name}, {entry.line}\n{entry.heading}"),
                  "}" * len(entry.modules)]
    lines += [f"{source} -> {number} [label={_quoted(name)}];" for number, entry in tape.entries.items()
              for name, source in entry.parents]
    return Drawing("\n".join([*lines, "}", ""]))


def _box(number: int, title: str, value: Any, norm: Any, about: str) -> str:
    text = [title, f"{value.shape} {value.dtype}", *([] if norm is None else [f"|g| {norm_text(norm)}"])]
    return f"{number} [label={_quoted(chr(10).join(text))}, tooltip={_quoted(about)}];"


# A string of DOT: every character stands for itself, and a new line for one.
_quoted = partial(json.dumps, ensure_ascii=False)
