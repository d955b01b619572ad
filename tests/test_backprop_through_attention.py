"""The figures of docs/backprop_through_attention.md; its code runs in test_docs.py."""

import runpy
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "docs/images"


def test_the_pictures_are_those_that_the_script_draws():
    script = runpy.run_path(str(IMAGES / "backprop_through_attention.py"))
    for name, function in (("flow", "flow"), ("softmax", "softmax_row")):
        kept = (IMAGES / f"backprop_through_attention_{name}.svg").read_text(encoding="utf-8")
        assert kept == script[function]()
