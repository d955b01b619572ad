"""The picture of the graph: geometry that makes it readable, SVG and DOT that others can read."""

import itertools
import re
import runpy
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, inspect
from minigrad.inspect.boxes import CHARACTER, SMALL
from minigrad.inspect.layout import CycleError, Item, Link, arrange

from tests.minigrad.inspect.tapes import (
    attention_tape,
    checkpoint_tape,
    expansion_tape,
    second_order_tape,
    step_tape,
)

TAPES = {"attention by steps": attention_tape, "a training step": step_tape, "second order": second_order_tape,
         "checkpoints": checkpoint_tape, "an expanded composition": expansion_tape}
DRAWN = {**{name: (tape, None) for name, tape in TAPES.items()},
         **{f"a training step to depth {depth}": (step_tape, depth) for depth in range(5)},
         **{f"checkpoints to depth {depth}": (checkpoint_tape, depth) for depth in range(5)}}


@pytest.fixture(scope="module", params=DRAWN.values(), ids=DRAWN.keys())
def picture(request):
    make, depth = request.param
    return inspect.draw(make(), depth=depth).picture


def overlap(a, b):
    return (a.x < b.x + b.width and b.x < a.x + a.width) and (a.y < b.y + b.height and b.y < a.y + a.height)


def contains(outer, inner, slack=0.01):
    return (outer.x - slack <= inner.x and inner.x + inner.width <= outer.x + outer.width + slack
            and outer.y - slack <= inner.y and inner.y + inner.height <= outer.y + outer.height + slack)


def test_no_two_boxes_overlap(picture):
    for a, b in itertools.combinations(picture.boxes, 2):
        assert not overlap(a, b), (a.title, b.title)


def test_every_text_fits_its_box(picture):
    for box in picture.boxes:
        assert CHARACTER * len(box.title) <= box.width
        assert all(SMALL * len(text) <= box.width for text in box.details)
        assert 13 * len(box.details) + (14 if box.inputs else 0) + 14 <= box.height
        strips = [SMALL * len(name) for name in box.inputs]
        for name, left, right in zip(box.inputs, box.ports, box.ports[1:], strict=False):
            assert right - left >= SMALL * len(name)  # the names of inputs do not run into each other
        if strips:
            assert box.ports[0] - strips[0] / 2 >= 0
            assert box.ports[-1] + strips[-1] / 2 <= box.width


def test_edges_run_downwards_from_box_to_input(picture):
    for edge in picture.edges:
        path = edge.path
        assert path[0] == pytest.approx((edge.source.x + edge.source.width / 2, edge.source.y + edge.source.height))
        assert path[-1] == pytest.approx((edge.target.x + edge.target.ports[edge.place], edge.target.y))
        assert all(upper[1] <= lower[1] + 1e-9 for upper, lower in itertools.pairwise(path))


def test_no_edge_runs_through_a_box(picture):
    """Where an edge moves sideways it stays between the two heights, so it is enough to look at those rectangles."""
    for edge in picture.edges:
        for (x, y), (to_x, to_y) in itertools.pairwise(edge.path):
            left, right = sorted((x, to_x))
            for box in picture.boxes:
                if box is edge.source or box is edge.target:
                    continue
                inside = left < box.x + box.width and box.x < right and y < box.y + box.height and box.y < to_y
                assert not inside, (edge.source.title, edge.target.title, box.title)


def test_frames_hold_what_is_theirs_and_nothing_else(picture):
    def everything(frame):
        yield from frame.boxes
        for inner in frame.frames:
            yield inner
            yield from everything(inner)

    for frame in picture.frames:
        own = list(everything(frame))
        assert own
        assert all(contains(frame, part) for part in own)
        for box in picture.boxes:
            assert box in own or not overlap(frame, box), (frame.title, box.title)
    for a, b in itertools.combinations(picture.frames, 2):
        assert not overlap(a, b) or contains(a, b) or contains(b, a)


def test_everything_is_within_the_picture(picture):
    for part in (*picture.boxes, *picture.frames):
        assert contains(picture.root, part)


def test_attention_is_drawn_with_its_modules_parameters_and_gradients():
    tape = attention_tape()
    drawing = inspect.draw(tape)
    titles = [frame.title for frame in drawing.picture.frames]
    assert sorted(titles) == ["MultiHeadAttention", "key", "output", "query", "value"]
    leaves = {box.tooltip for box in drawing.picture.boxes if box.kind == "leaf"}
    assert "MultiHeadAttention.query.weight" in leaves
    assert "a leaf" in leaves  # the input, which has no name
    assert len(drawing.picture.edges) == sum(len(entry.parents) for entry in tape.entries.values())
    by_name = {box.tooltip: box for box in drawing.picture.boxes if box.kind == "leaf"}
    query = next(frame for frame in drawing.picture.frames if frame.title == "query")
    assert by_name["MultiHeadAttention.query.weight"] in query.boxes
    assert "|g|" in drawing.svg
    assert "|g|" not in inspect.draw(attention_tape(backward=False)).svg


def test_the_picture_in_the_docs_is_the_one_that_its_script_draws():
    folder = Path(__file__).parents[3] / "docs/images"
    found = runpy.run_path(str(folder / "attention_graph.py"))["attention_graph"]().svg
    kept = (folder / "attention_graph.svg").read_text(encoding="utf-8")

    def texts(svg):  # but not the tips, which have numbers of lines, nor the gradients, which are rounded
        every = [text.text for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
        return [text for text in every if not text.startswith("|g|")]

    assert texts(kept) == texts(found)
    assert "|g|" in kept


def count_crossings(edges):
    """How often one edge changes from the left side of another to the right, looked at every two pixels."""
    count = 0
    for a, b in itertools.combinations(edges, 2):
        top, bottom = max(a.path[0][1], b.path[0][1]), min(a.path[-1][1], b.path[-1][1])
        heights = np.arange(top + 1, bottom - 1, 2)
        at_a, at_b = (np.interp(heights, [y for _, y in e.path], [x for x, _ in e.path]) for e in (a, b))
        sides = np.sign(np.round(at_a - at_b, 3))
        count += int((sides[1:] * sides[:-1] < 0).sum())
    return count


def test_no_lines_of_attention_cross():
    edges = inspect.draw(attention_tape()).picture.edges
    assert len(edges) > 35
    assert count_crossings(edges) == 0


def test_the_svg_is_whole_readable_and_accessible(tmp_path):
    drawing = inspect.draw(attention_tape())
    root = ET.fromstring(drawing.svg)
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    assert [child.tag for child in root][:2] == [f"{space}title", f"{space}desc"]
    assert "operations from" in root.find(f"{space}desc").text
    texts = [text.text for text in root.iter(f"{space}text")]
    assert "matmul" in texts
    assert "(2,2,5,5) f32" in texts
    assert "prefers-color-scheme:dark" in drawing.svg
    assert "href" not in drawing.svg  # self-contained
    assert len(list(root.iter(f"{space}path"))) >= 2 * len(drawing.picture.edges)
    drawing.save(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == drawing.svg == drawing._repr_svg_()


def test_names_are_escaped():
    @mg.primitive
    def less_than_one(x):
        return x * 1.0

    less_than_one.gradient(x=lambda g: g)
    less_than_one.name = 'a<b&"c"'
    drawing = inspect.draw(less_than_one(Tensor([1.0], requires_grad=True)))
    assert 'a<b&"c"' in [text.text for text in ET.fromstring(drawing.svg).iter("{http://www.w3.org/2000/svg}text")]
    assert r'a<b&\"c\"' in drawing.dot


def test_dot_has_the_same_nodes_edges_and_clusters(tmp_path):
    drawing = inspect.draw(attention_tape())
    text = drawing.dot
    assert text.startswith("digraph")
    assert text.count("{") == text.count("}")
    assert len(re.findall(r"^ *(n\d+|leaf\d+) \[", text, re.MULTILINE)) == len(drawing.picture.boxes)
    assert len(re.findall(r" -> n\d+ \[label=", text)) == len(drawing.picture.edges)
    assert text.count("subgraph cluster_") == len(drawing.picture.frames)
    drawing.save(tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text(encoding="utf-8") == text


def test_drawing_a_tensor(device):
    x = Tensor(np.ones((2, 3)), device=device, requires_grad=True)
    drawing = inspect.draw((mg.exp(x) * x).sum())
    assert sorted(box.title for box in drawing.picture.boxes) == ["exp", "leaf", "mul", "sum"]
    assert drawing.picture.frames == []
    edges = [edge for edge in drawing.picture.edges if edge.target.title == "mul"]
    assert [edge.target.inputs[edge.place] for edge in edges] == ["x", "y"]


def test_what_cannot_be_drawn(tmp_path):
    with pytest.raises(TypeError, match="tensor"):
        inspect.draw([1.0])
    with pytest.raises(ValueError, match="nothing was recorded"), inspect.record_tape() as tape:
        inspect.draw(tape)
    x = Tensor([1.0], requires_grad=True)
    with pytest.raises(ValueError, match=r"\.svg, \.dot or \.gv, got 'graph\.png'"):
        inspect.draw(x * 2).save(tmp_path / "graph.png")


def test_a_long_link_passes_beside_what_is_between():
    a, b, c = Item(100, 20), Item(100, 20), Item(100, 20)
    links = [Link(a, b, 50, 50), Link(b, c, 50, 30), Link(a, c, 50, 70)]
    width, height = arrange([a, b, c], links)
    assert a.y < b.y < c.y
    passing = [x for x, y in links[2].points if b.y <= y <= b.y + b.height]
    assert passing
    assert all(x <= b.x or x >= b.x + b.width for x in passing)
    assert height == c.y + c.height
    assert width >= 100


def test_a_cycle_cannot_be_laid_out():
    a, b = Item(10, 10), Item(10, 10)
    with pytest.raises(CycleError):
        arrange([a, b], [Link(a, b, 5, 5), Link(b, a, 5, 5)])


def test_links_are_untangled():
    """Four items above four, linked in reverse order: without a crossing after the order is improved."""
    upper, lower = [Item(30, 10) for _ in range(4)], [Item(30, 10) for _ in range(4)]
    arrange([*upper, *lower], [Link(a, b, 15, 15) for a, b in zip(upper, reversed(lower), strict=True)])
    tops, bottoms = [item.x for item in upper], [item.x for item in reversed(lower)]
    assert np.argsort(tops).tolist() == np.argsort(bottoms).tolist()
    assert tops == pytest.approx(bottoms)  # and straight
