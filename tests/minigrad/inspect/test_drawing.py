"""The picture of the graph: what is drawn as DOT that Graphviz reads, and as the SVG that it draws."""

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


def name_of(number):
    return f"n{number}" if number >= 0 else f"leaf{-number}"


def edges(drawing):
    """The edges of a drawing: from a box, into an input of a box."""
    return [found.groups() for found in re.finditer(r"^  (\w+):s -> (\w+):(in\d+):n ", drawing.dot, re.MULTILINE)]


def test_attention_is_drawn_with_its_modules_parameters_and_gradients():
    tape = programs.attention_tape()
    drawing = inspect.draw(tape)
    assert sorted(re.findall(r"label=<<b>(\w+)</b>>", drawing.dot)) == [
        "MultiHeadAttention", "key", "output", "query", "value"]
    query = drawing.dot[drawing.dot.index("<b>query</b>"):].partition("}")[0]
    assert 'tooltip="MultiHeadAttention.query.weight"' in query
    assert re.search(r'^  leaf\d+ \[tooltip="a leaf"', drawing.dot, re.MULTILINE)  # the input, in no frame
    assert sorted(edges(drawing)) == sorted(
        (name_of(source), name_of(number), f"in{place}") for number, entry in tape.entries.items()
        for place, (_, source) in enumerate(entry.parents))
    for number, one in (tape.entries | tape.leaves).items():
        (box,) = re.findall(rf"^ *{name_of(number)} \[(.*)", drawing.dot, re.MULTILINE)
        norm = "" if one.gradient_norm is None else f"<br/>|g| {one.gradient_norm:.2e}"
        assert f"{shape_text(one.shape)} f32{norm}</td>" in box


def test_what_cannot_be_drawn(tmp_path):
    tape = record(lambda: leaf(1) * 2)
    for error, wrong, fact in ((TypeError, leaf(1) * 2, "tape"), (ValueError, record(list), "recorded")):
        with pytest.raises(error, match=fact):
            inspect.draw(wrong)
    with pytest.raises(ValueError, match=r"graph\.png"):
        inspect.draw(tape).save(tmp_path / "graph.png")


@needs_graphviz
@pytest.mark.parametrize("make", [programs.attention_tape, programs.checkpoint_tape])
def test_graphviz_draws_every_box_edge_and_frame(make, tmp_path):
    import pygraphviz

    tape = make()
    drawing = inspect.draw(tape)
    drawing.save(tmp_path / "graph.svg")
    svg = (tmp_path / "graph.svg").read_text(encoding="utf-8")
    assert svg == drawing._repr_svg_() == drawing.svg
    assert svg.startswith("<svg")
    assert "href" not in svg.replace("xmlns:xlink", "").replace("xlink:title", "")  # it stands alone
    graph = pygraphviz.AGraph(string=drawing.dot)
    read = [(edge[0], edge[1], edge.attr["headport"].removesuffix(":n")) for edge in graph.edges()]
    assert sorted(read) == sorted(edges(drawing))
    assert set(graph.nodes()) == {name_of(number) for number in (*tape.entries, *tape.leaves)}
    calls = {call.number: call for entry in tape.entries.values() if entry.call for call in entry.call.chain}
    assert {call.name for call in calls.values()} <= set(texts(svg))

    def check(part, outer, within):
        """The clusters that Graphviz reads are the calls in each other, and their nodes what ran in them."""
        for cluster in part.subgraphs():
            call = calls.pop(int(cluster.name.removeprefix("cluster_")))
            assert call.outer is outer
            ran = {name_of(number) for number, entry in tape.entries.items() if entry.call and call in entry.call.chain}
            assert {node for node in cluster.nodes() if node.startswith("n")} == ran <= within
            check(cluster, call, ran)

    check(graph, None, set(graph.nodes()))
    assert calls == {}


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


def test_without_graphviz_there_is_dot_and_one_line_that_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    drawing = inspect.draw(record(lambda: leaf(1) * 2))
    drawing.save(tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text(encoding="utf-8") == drawing.dot
    with pytest.raises(ImportError, match=r"\[draw\]"):
        drawing.save(tmp_path / "graph.svg")
    assert not (tmp_path / "graph.svg").exists()
