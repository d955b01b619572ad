"""The figures of docs/backprop_through_attention.md; its code runs in test_docs.py."""

import re
import runpy
from pathlib import Path

import numpy as np

IMAGES = Path(__file__).parents[1] / "docs/images"


def test_the_pictures_are_those_that_the_script_draws_and_their_numbers_are_right():
    script = runpy.run_path(str(IMAGES / "backprop_through_attention.py"))
    for name, function in (("flow", "flow"), ("softmax", "softmax_row")):
        kept = (IMAGES / f"backprop_through_attention_{name}.svg").read_text(encoding="utf-8")
        assert kept == script[function]()
    scores, dA = script["SCORES_OF_ROW"], script["GRADIENTS_OF_ROW"]
    A = np.exp(scores) / np.exp(scores).sum()
    expected = np.stack([A, dA, A * (dA - (A * dA).sum())], axis=1).ravel()
    shown = re.findall(r">(−?\d\.\d\d)<", script["softmax_row"]())
    np.testing.assert_allclose([float(text.replace("−", "-")) for text in shown], expected, atol=0.005)
