"""The picture of the graph: what is drawn, as data, as DOT that Graphviz reads, and as the SVG that it draws."""

import itertools
import platform
import re
import sys
import xml.etree.ElementTree as ET

import pytest

import minigrad as mg
from minigrad import inspect
from minigrad.inspect.modules import ModuleCall
from minigrad.inspect.table import shape_text

from tests.minigrad.inspect import programs
from tests.minigrad.inspect.programs import leaf, record

SVG = "{http://www.w3.org/2000/svg}"

# pygraphviz has wheels for these processors alone: see the extra "draw" in setup.cfg.
needs_graphviz = pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64", "aarch64", "arm64"},
                                    reason="no wheel of pygraphviz for this processor")


def texts(svg):
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]


def tooltips(svg):
    return [link.get("{http://www.w3.org/1999/xlink}title") for link in ET.fromstring(svg).iter(f"{SVG}a")]


def name_of(box):
    return f"n{box.number}" if box.number >= 0 else f"leaf{-box.number}"


def test_attention_is_drawn_with_its_modules_parameters_and_gradients():
    tape = programs.attention_tape()
    picture = inspect.draw(tape).picture
    assert sorted(frame.title for frame in picture.frames) == ["MultiHeadAttention", "key", "output", "query", "value"]
    leaves = {box.tooltip: box for box in picture.boxes if box.kind == "leaf"}
    query = next(frame for frame in picture.frames if frame.title == "query")
    assert leaves["MultiHeadAttention.query.weight"] in query.boxes
    assert leaves["a leaf"] in picture.root.boxes  # the input, which has no name
    links = {(source, number, place) for number, entry in tape.entries.items()
             for place, (_, source) in enumerate(entry.parents)}
    assert {(edge.source.number, edge.target.number, edge.place) for edge in picture.edges} == links
    for box in picture.boxes:
        one = tape.entries.get(box.number) or tape.leaves[box.number]
        assert box.norm == one.gradient_norm
        assert box.details == [f"{shape_text(one.shape)} f32", *([f"|g| {one.gradient_norm:.2e}"] if box.norm else [])]


def test_what_cannot_be_drawn(tmp_path):
    tape, out = record(lambda: leaf(1) * 2), leaf(1) * 2
    for error, wrong, depth, fact in ((TypeError, [1.0], None, "tensor"), (TypeError, tape, 1.0, "depth"),
                                      (ValueError, record(list), None, "recorded"), (ValueError, tape, -1, "-1"),
                                      (ValueError, out, 1, "tape")):
        with pytest.raises(error, match=fact):
            inspect.draw(wrong, depth=depth)
    drawing = inspect.draw(out)  # of a tensor, without modules
    assert sorted(box.title for box in drawing.picture.boxes) == ["leaf", "mul"]
    with pytest.raises(ValueError, match=r"graph\.png"):
        drawing.save(tmp_path / "graph.png")


def test_what_a_checkpoint_computes_again_stands_between_its_input_and_itself():
    drawn = inspect.draw(programs.checkpoint_tape()).picture
    assert [frame.title for frame in drawn.frames].count("checkpoint (computed again)") == 4
    points = [box for box in drawn.boxes if box.title == "checkpoint"]
    assert len(points) == 4
    for point in points:
        (edge,) = [edge for edge in drawn.edges if edge.target is point]
        assert point.inputs == ["computed again"]
        assert edge.source.call.path == "checkpoint (computed again)"
        assert edge.source.norm == pytest.approx(point.norm)


def test_an_expanded_composition_is_connected_to_the_fused_operation():
    drawn = inspect.draw(programs.expansion_tape()).picture
    fused = next(box for box in drawn.boxes if box.title == "layer_norm")
    assert fused.inputs[-1] == "composition"
    assert len([edge for edge in drawn.edges if edge.target is fused]) == len(fused.inputs)


def test_to_a_depth_modules_are_one_box_each():
    tape = programs.step_tape()
    drawn = inspect.draw(tape, depth=1)
    boxes = {box.title: box for box in drawn.picture.boxes}
    parts = ("encoder", "decoder", "projection")
    assert {box.title for box in boxes.values() if box.kind == "module"} == set(parts)
    entries = [entry for entry in tape.entries.values() if entry.call is not None]
    ends = {name: max((entry for entry in entries if entry.call.path.startswith(name)), key=lambda e: e.number)
            for name in parts}
    for source, name in itertools.pairwise(parts):
        assert boxes[name].norm == ends[name].gradient_norm
        assert boxes[name].inputs == [shape_text(ends[source].shape)]
        assert f"|g| in {ends[source].gradient_norm:.2e}" in boxes[name].details
        assert f"|g| out {ends[name].gradient_norm:.2e}" in boxes[name].details
        assert [edge.source.title for edge in drawn.picture.edges if edge.target is boxes[name]] == [source]
    counted = [int(text.split()[0].replace(",", "")) for box in boxes.values() for text in box.details
               if text.endswith("parameters")]
    assert sum(counted) == programs.training_step()[0].num_parameters()
    assert boxes["encoder"].details[0] == "Encoder"


def test_a_tensor_that_enters_a_module_several_times_enters_its_box_once():
    drawn = inspect.draw(programs.attention_tape(), depth=0).picture
    (module,) = [box for box in drawn.boxes if box.kind == "module"]
    assert module.inputs == ["(2,5,8)"]
    assert [(edge.source.title, edge.target.title) for edge in drawn.edges] \
        == [("leaf", "MultiHeadAttention"), ("MultiHeadAttention", "sum")]


@needs_graphviz
@pytest.mark.parametrize(("make", "depth"), [(programs.attention_tape, None), (programs.checkpoint_tape, None),
                                             (programs.step_tape, 1)])
def test_graphviz_draws_every_box_edge_and_frame(make, depth, tmp_path):
    import pygraphviz

    drawing = inspect.draw(make(), depth=depth)
    picture, svg = drawing.picture, drawing.svg
    drawing.save(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == drawing._repr_svg_() == svg
    assert svg.startswith("<svg")
    assert "href" not in svg.replace("xmlns:xlink", "").replace("xlink:title", "")  # it stands alone
    assert {frame.title for frame in picture.frames} <= set(texts(svg))
    graph = pygraphviz.AGraph(string=drawing.dot)
    read = [(edge[0], edge[1], edge.attr["headport"]) for edge in graph.edges()]
    assert sorted(read) == sorted((name_of(e.source), name_of(e.target), f"in{e.place}:n") for e in picture.edges)
    for box in picture.boxes:
        assert {box.title, *box.details, *box.inputs} <= set(texts(svg))
        assert box.tooltip.replace("  ", " \xa0") in tooltips(svg)  # of two blanks Graphviz writes one as a hard one
        label = graph.get_node(name_of(box)).attr["label"]
        assert re.findall(r'port="(\w+)"', label) == [f"in{i}" for i in range(len(box.inputs))]

    def compare(part, frame):
        """The clusters that Graphviz reads are the frames of the calls, each with what belongs to it."""
        clusters = {one.name: one for one in part.subgraphs()}
        within = {node for one in clusters.values() for node in one.nodes()}
        assert set(part.nodes()) - within == set(map(name_of, frame.boxes))
        assert len(clusters) == len(frame.frames)
        for one in frame.frames:
            assert one.call.outer is frame.call
            compare(clusters[f"cluster_{one.call.number}"], one)

    compare(graph, picture.root)


@needs_graphviz
@pytest.mark.parametrize("name", ['a<b&"c"', r"\N \n \\ \G \L", "two\nlines", "a\0b", ""])
def test_names_are_drawn_literally(name):
    """What means something to DOT, to Graphviz's labels or to XML is text in a box, in a frame and in a tooltip."""
    @mg.primitive
    def named(x):
        return x * 1.0

    named.gradient(x=lambda g: g)
    named.name = name
    tape = record(lambda: named(leaf(1)))
    (entry,) = tape.entries.values()
    entry.call = ModuleCall(f"{name}.", name, 1, None)
    svg = inspect.draw(tape).svg
    on_one_line = "".join(c if c.isprintable() else " " for c in name)
    assert {on_one_line or " ", f"{on_one_line}."} <= set(texts(svg))
    shown = name.replace("\0", " ")
    assert {f"{shown}. ({shown})", f"leaf → x of {shown}"} <= set(tooltips(svg))


def test_the_larger_the_gradient_the_stronger_the_colour():
    tape = record(lambda: ((mg.exp(leaf(3)) * 10.0) * 10.0).sum().backward())
    drawing = inspect.draw(tape)
    fills = dict(re.findall(r'^ *(\w+) \[.*bgcolor="#(\w+)"', drawing.dot, re.MULTILINE))
    boxes = sorted(drawing.picture.boxes, key=lambda box: box.norm)
    blues = [int(fills[name_of(box)][4:], 16) for box in boxes]  # white has all of it, orange hardly any
    assert blues == sorted(blues, reverse=True)
    assert blues[0] > blues[-1] + 50


def test_without_graphviz_there_is_dot_and_one_line_that_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    drawing = inspect.draw(leaf(1) * 2)
    drawing.save(tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text(encoding="utf-8") == drawing.dot
    with pytest.raises(ImportError, match=r"\[draw\]"):
        drawing.save(tmp_path / "graph.svg")
    assert not (tmp_path / "graph.svg").exists()
