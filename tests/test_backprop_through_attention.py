"""The figures of docs/backprop_through_attention.md; its code runs in test_docs.py."""

import re
import runpy
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

IMAGES = Path(__file__).parents[1] / "docs/images"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(IMAGES / "backprop_through_attention.py"))


def texts(svg):
    return [text.text for text in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize(("name", "function"), [("flow", "flow"), ("softmax", "softmax_row")])
def test_the_pictures_are_those_that_the_script_draws(script, name, function):
    kept = (IMAGES / f"backprop_through_attention_{name}.svg").read_text(encoding="utf-8")
    assert kept == script[function]()


def test_the_numbers_of_the_softmax_are_right(script):
    scores, dA = script["SCORES_OF_ROW"], script["GRADIENTS_OF_ROW"]
    A = np.exp(scores) / np.exp(scores).sum()
    D = (A * dA).sum()
    found = texts(script["softmax_row"]())
    shown = [float(text.replace("−", "-")) for text in found if re.fullmatch(r"−?\d\.\d\d", text)]
    expected = np.stack([A, dA, A * (dA - D)], axis=1).ravel()
    np.testing.assert_allclose(shown, expected, atol=0.005)
    assert f"D = Σ A dA = {D:.2f}".replace("-", "−") in found


def test_the_boxes_of_the_flow_do_not_overlap_and_lie_inside(script):
    root = ET.fromstring(script["flow"]())
    boxes = [tuple(float(rect.get(name)) for name in ("x", "y", "width", "height"))
             for rect in root.iter(f"{SVG}rect") if rect.get("class") != "page"]
    assert len(boxes) == 2 * len(script["BOXES"])
    for i, (x, y, w, h) in enumerate(boxes):
        assert 0 < x < x + w < float(root.get("width"))
        assert 0 < y < y + h < float(root.get("height"))
        for u, v, s, t in boxes[:i]:
            assert x + w <= u or u + s <= x or y + h <= v or v + t <= y


def test_every_gradient_of_the_page_is_in_the_flow(script):
    found = " ".join(texts(script["flow"]()))
    for symbol in ("dX", "dM", "dW_Q", "dW_K", "dW_V", "dW_O", "db_Q", "db_K", "db_V", "db_O", "dQ", "dK", "dV", "dR",
                   "dS", "dS̄", "dA", "dA′", "dO", "dC"):
        assert f"{symbol} = " in found
    assert "dY, from the loss" in found
