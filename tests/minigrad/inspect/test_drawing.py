"""The picture of the graph: what is drawn as DOT that Graphviz reads, and as the SVG that it draws."""

import platform
import sys
import xml.etree.ElementTree as ET

import pytest

from minigrad import inspect

from tests.minigrad.inspect.programs import leaf, record, training_step

# pygraphviz has wheels for these processors alone: see the extra "draw" in setup.cfg.
needs_graphviz = pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64", "aarch64", "arm64"},
                                    reason="no wheel of pygraphviz for this processor")


@needs_graphviz
def test_graphviz_draws_every_box_edge_and_frame(tmp_path):
    import pygraphviz

    tape = record(training_step()[1])
    drawing = inspect.draw(tape)
    drawing.save(tmp_path / "graph.svg")
    svg = drawing._repr_svg_()
    assert svg.startswith("<svg")
    assert svg == (tmp_path / "graph.svg").read_text(encoding="utf-8")
    assert "href" not in svg.replace("xmlns:xlink", "").replace("xlink:title", "")  # it stands alone
    graph = pygraphviz.AGraph(string=drawing.dot)
    assert sorted((int(source), int(target)) for source, target in graph.edges()) == sorted(
        {(source, number) for number, entry in tape.entries.items() for _, source in entry.parents})
    assert {*map(str, (*tape.entries, *tape.leaves))} == set(graph.nodes())
    texts = {"".join(text.itertext()) for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}
    assert {call.name for entry in tape.entries.values() for call in entry.modules} <= texts


def test_without_graphviz_there_is_dot_and_one_line_that_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    drawing = inspect.draw(record(lambda: (leaf(1) * 2).backward()))
    assert r"mul\n(1,) float64\n|g| 1.00e+00" in drawing.dot
    drawing.save(tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text(encoding="utf-8") == drawing.dot
    with pytest.raises(ImportError, match=r"\[draw\]"):
        drawing.save(tmp_path / "graph.svg")
    assert not (tmp_path / "graph.svg").exists()
