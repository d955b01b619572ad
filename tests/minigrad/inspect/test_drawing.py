"""The picture of the graph: what is drawn, as data, as DOT that Graphviz reads, and as the SVG that it draws."""

import platform
import re
import runpy
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, inspect
from minigrad.inspect.modules import ModuleCall

from tests.minigrad.inspect.tapes import (
    attention_tape,
    checkpoint_tape,
    expansion_tape,
    second_order_tape,
    step_tape,
)

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {"attention by steps": (attention_tape, None), "second order": (second_order_tape, None),
         "checkpoints": (checkpoint_tape, None), "an expanded composition": (expansion_tape, None),
         **{f"a training step to depth {depth}": (step_tape, depth) for depth in (0, 1, 3, None)}}

# pygraphviz has wheels for these processors alone: see the extra "draw" in setup.cfg.
needs_graphviz = pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64", "aarch64", "arm64"},
                                    reason="no wheel of pygraphviz for this processor")


@pytest.fixture(scope="module", params=DRAWN.values(), ids=DRAWN.keys())
def drawing(request):
    make, depth = request.param
    return inspect.draw(make(), depth=depth)


def texts(svg):
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]


def tooltips(svg):
    return [link.get("{http://www.w3.org/1999/xlink}title") for link in ET.fromstring(svg).iter(f"{SVG}a")]


def titles(svg, kind):
    """What Graphviz calls the nodes, edges or clusters in its drawing."""
    return [group.find(f"{SVG}title").text for group in ET.fromstring(svg).iter(f"{SVG}g")
            if group.get("class") == kind]


def everything_in(frame):
    yield from frame.boxes
    for inner in frame.frames:
        yield from everything_in(inner)


def name_of(box):
    return f"n{box.number}" if box.number >= 0 else f"leaf{-box.number}"


# --- What is drawn -----------------------------------------------------------------------------------------


def test_attention_is_drawn_with_its_modules_parameters_and_gradients():
    tape = attention_tape()
    picture = inspect.draw(tape).picture
    assert sorted(frame.title for frame in picture.frames) == ["MultiHeadAttention", "key", "output", "query", "value"]
    leaves = {box.tooltip: box for box in picture.boxes if box.kind == "leaf"}
    assert "a leaf" in leaves  # the input, which has no name
    query = next(frame for frame in picture.frames if frame.title == "query")
    assert leaves["MultiHeadAttention.query.weight"] in query.boxes
    assert leaves["a leaf"] in picture.root.boxes
    links = {(source, number, place) for number, entry in tape.entries.items()
             for place, (_, source) in enumerate(entry.parents)}
    assert {(edge.source.number, edge.target.number, edge.place) for edge in picture.edges} == links
    for box in picture.boxes:
        one = tape.entries.get(box.number) or tape.leaves[box.number]
        assert box.norm == one.gradient_norm
        assert box.details[0] == f"({','.join(map(str, one.shape))}) f32"
        assert box.details[1:] == ([] if one.gradient_norm is None else [f"|g| {one.gradient_norm:.2e}"])


def test_every_box_stands_in_the_frame_of_its_call(drawing):
    picture = drawing.picture
    assert sorted(everything_in(picture.root), key=id) == sorted(picture.boxes, key=id)
    for frame in [picture.root, *picture.frames]:
        assert all(box.call is frame.call for box in frame.boxes)
        assert all(inner.call.outer is frame.call for inner in frame.frames)
        assert frame is picture.root or list(everything_in(frame))


def test_drawing_a_tensor(device):
    x = Tensor(np.ones((2, 3)), device=device, requires_grad=True)
    out = (mg.exp(x) * x).sum()
    for freed in (False, True):
        if freed:
            out.backward()
        picture = inspect.draw(out).picture
        assert sorted(box.title for box in picture.boxes) == ["exp", "leaf", "mul", "sum"]
        assert picture.frames == []
        edges = [edge for edge in picture.edges if edge.target.title == "mul"]
        assert [edge.target.inputs[edge.place] for edge in edges] == ["x", "y"]


def test_what_cannot_be_drawn(tmp_path):
    with pytest.raises(TypeError, match="tensor"):
        inspect.draw([1.0])
    with pytest.raises(ValueError, match="nothing was recorded"), inspect.record_tape() as tape:
        inspect.draw(tape)
    x = Tensor([1.0], requires_grad=True)
    with pytest.raises(ValueError, match=r"\.svg, \.dot or \.gv, got 'graph\.png'"):
        inspect.draw(x * 2).save(tmp_path / "graph.png")


# --- As DOT and SVG ----------------------------------------------------------------------------------------


@needs_graphviz
def test_graphviz_draws_every_box_edge_and_frame(drawing):
    picture = drawing.picture
    assert sorted(titles(drawing.svg, "node")) == sorted(map(name_of, picture.boxes))
    edges = [f"{name_of(edge.source)}:s->{name_of(edge.target)}:n" for edge in picture.edges]
    assert sorted(titles(drawing.svg, "edge")) == sorted(edges)
    assert sorted(titles(drawing.svg, "cluster")) == sorted(f"cluster_{frame.call.number}" for frame in picture.frames)
    drawn = texts(drawing.svg)
    for box in picture.boxes:
        assert {box.title, *box.details, *box.inputs} <= set(drawn)
        assert box.tooltip in tooltips(drawing.svg)
    assert {frame.title for frame in picture.frames} <= set(drawn)


@needs_graphviz
def test_graphviz_reads_the_ports_and_the_frames_of_the_dot(drawing):
    import pygraphviz

    graph, picture = pygraphviz.AGraph(string=drawing.dot), drawing.picture
    read = [(edge[0], edge[1], edge.attr["headport"]) for edge in graph.edges()]
    assert sorted(read) == sorted((name_of(e.source), name_of(e.target), f"in{e.place}:n") for e in picture.edges)
    for box in picture.boxes:
        label = graph.get_node(name_of(box)).attr["label"]
        assert re.findall(r'port="(\w+)"', label) == [f"in{i}" for i in range(len(box.inputs))]

    def compare(part, frame):
        inner = {one.name: one for one in part.subgraphs()}
        assert {f"cluster_{one.call.number}" for one in frame.frames} == set(inner)
        assert set(part.nodes()) == set(map(name_of, everything_in(frame)))
        for one in frame.frames:
            compare(inner[f"cluster_{one.call.number}"], one)

    compare(graph, picture.root)


@needs_graphviz
def test_the_svg_stands_alone_and_files_hold_what_the_drawing_shows(tmp_path):
    drawing = inspect.draw(second_order_tape())
    assert drawing.svg.startswith("<svg")
    assert "href" not in drawing.svg.replace("xmlns:xlink", "")
    for name, text in [("graph.svg", drawing.svg), ("graph.dot", drawing.dot), ("graph.gv", drawing.dot)]:
        drawing.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == text
    assert drawing._repr_svg_() == drawing.svg


@needs_graphviz
@pytest.mark.parametrize("name", ['a<b&"c"', r"\N \n \\ \G \L", "&lt;&#92;", "]]>--> |{}'", "日本語", "two\nlines",
                                  "a\0b", ""])
def test_names_are_drawn_literally(name):
    """What means something to DOT, to Graphviz's labels or to XML is text in a box, in a frame and in a tooltip."""
    @mg.primitive
    def named(x):
        return x * 1.0

    named.gradient(x=lambda g: g)
    named.name = name
    with inspect.record_tape() as tape:
        named(Tensor([1.0], requires_grad=True))
    (entry,) = tape.entries.values()
    entry.call = ModuleCall(f"{name}.", name, 1, None)
    svg = inspect.draw(tape).svg
    on_one_line = "".join(c if c.isprintable() else " " for c in name)
    assert {on_one_line or " ", f"{on_one_line}."} <= set(texts(svg))
    shown = name.replace("\0", " ")
    assert {f"{shown}. ({shown})", f"leaf → x of {shown}"} <= set(tooltips(svg))


@needs_graphviz
@pytest.mark.parametrize("depth", [None, 0])
def test_calls_that_ran_interleaved_are_drawn(depth):
    """As those of asynchronous modules can; drawn as one box each, they are in a circle."""
    with inspect.record_tape() as tape:
        mg.exp(mg.tanh(mg.sin(Tensor([1.0], requires_grad=True))))
    one, other = ModuleCall("one", "One", 1, None), ModuleCall("other", "Other", 2, None)
    for entry, call in zip(tape.entries.values(), (one, other, one), strict=True):
        entry.call = call
    drawing = inspect.draw(tape, depth=depth)
    assert {"one", "other"} <= set(texts(drawing.svg))
    assert len(titles(drawing.svg, "edge")) == 3


def test_the_larger_the_gradient_the_stronger_the_colour():
    x = Tensor(np.ones(3), requires_grad=True)
    with inspect.record_tape() as tape:
        out = ((x * 10.0) * 10.0).sum()
        mg.exp(x)  # no gradient comes to it
        out.backward()
    drawing = inspect.draw(tape)
    fills = dict(re.findall(r'^ *(\w+) \[.*bgcolor="#(\w+)"', drawing.dot, re.MULTILINE))
    boxes = sorted(drawing.picture.boxes, key=lambda box: box.norm or 0)
    assert boxes[0].title == "exp"
    blues = [int(fills[name_of(box)][4:], 16) for box in boxes]  # white has all of it, orange hardly any
    assert blues[0] == 255
    assert blues == sorted(set(blues), reverse=True)


def test_without_graphviz_there_is_dot_and_one_line_that_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    drawing = inspect.draw(second_order_tape())
    drawing.save(tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text(encoding="utf-8").startswith("digraph")
    with pytest.raises(ImportError, match=r"pip install -e '\.\[draw\]'") as caught:
        drawing.save(tmp_path / "graph.svg")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "graph.svg").exists()


@needs_graphviz
def test_the_picture_in_the_docs_is_the_one_that_its_script_draws():
    folder = Path(__file__).parents[3] / "docs/images"
    found = runpy.run_path(str(folder / "attention_graph.py"))["attention_graph"]().svg
    kept = (folder / "attention_graph.svg").read_text(encoding="utf-8")

    def lasting(svg):  # the places of boxes depend on the fonts, and so may their order; gradients are rounded
        return sorted(text for text in texts(svg) if not text.startswith("|g|"))

    assert lasting(kept) == lasting(found)
    assert "|g|" in kept
