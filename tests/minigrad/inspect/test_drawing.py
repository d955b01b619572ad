"""The picture of the graph: what is drawn as DOT that Graphviz reads, and as the SVG that it draws."""

import platform
import re
import sys
import xml.etree.ElementTree as ET

import pytest

from minigrad import inspect

from tests.minigrad.inspect import programs
from tests.minigrad.inspect.programs import leaf, record

# pygraphviz has wheels for these processors alone: see the extra "draw" in setup.cfg.
needs_graphviz = pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64", "aarch64", "arm64"},
                                    reason="no wheel of pygraphviz for this processor")


def test_attention_is_drawn_with_its_modules_parameters_and_gradients():
    tape = programs.attention_tape()
    dot = inspect.draw(tape).dot
    assert sorted(re.findall(r'{ label="([\w.]+)"', dot)) == sorted(
        ["MultiHeadAttention", *(f"MultiHeadAttention.{name}" for name in ("key", "output", "query", "value"))])
    assert 'tooltip="MultiHeadAttention.query.weight"' in dot
    assert {tuple(map(int, found)) for found in re.findall(r"^(-?\d+) -> (\d+) ", dot, re.MULTILINE)} == {
        (source, number) for number, entry in tape.entries.items() for _, source in entry.parents}
    for number, entry in tape.entries.items():
        (label,) = re.findall(rf'^{number} \[label="(.*?)"', dot, re.MULTILINE)
        norm = [] if entry.gradient_norm is None else [f"|g| {entry.gradient_norm:.2e}"]
        assert label.split(r"\n") == [entry.name, f"{entry.shape} float32", *norm]


@needs_graphviz
@pytest.mark.parametrize("make", [programs.attention_tape, programs.checkpoint_tape])
def test_graphviz_draws_every_box_edge_and_frame(make, tmp_path):
    import pygraphviz

    tape = make()
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
    assert {call.name for entry in tape.entries.values() for call in entry.frame.modules} <= texts

    def check(part, depth):
        """The clusters that Graphviz reads are the calls in each other, and their nodes what ran in them."""
        for cluster in part.subgraphs():
            calls = {entry.frame.modules[depth] for number, entry in tape.entries.items()
                     if str(number) in cluster.nodes()}
            (call,) = calls
            assert {int(number) for number in cluster.nodes()} == {
                number for number, entry in tape.entries.items() if call in entry.frame.modules}
            check(cluster, depth + 1)

    check(graph, 0)


def test_without_graphviz_there_is_dot_and_one_line_that_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    drawing = inspect.draw(record(lambda: leaf(1) * 2))
    drawing.save(tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text(encoding="utf-8") == drawing.dot
    with pytest.raises(ImportError, match=r"\[draw\]"):
        drawing.save(tmp_path / "graph.svg")
    assert not (tmp_path / "graph.svg").exists()
