"""docs/engine_in_100_lines.py runs, and its gradients are right."""

import contextlib
import gc
import io
import runpy
import types
import weakref
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[1] / "docs/engine_in_100_lines.py"


@pytest.fixture(scope="module")
def page():
    """What the page defines once it has run."""
    with contextlib.redirect_stdout(io.StringIO()):
        return types.SimpleNamespace(**runpy.run_path(str(PAGE)))


def test_its_own_checks(page):
    assert page.first_error < 1e-8
    assert page.second_error < 1e-8
    assert page.error < 0.005  # the network has learnt the cosine


def test_a_dropped_graph_is_freed_at_once(page):
    gc.disable()
    try:
        x = page.Tensor(np.ones(3), requires_grad=True)
        y = page.tanh(x * x)
        node = weakref.ref(y.node)
        page.grad(page.grad(y, [x], create_graph=True)[0], [x])
        del y
        assert node() is None
    finally:
        gc.enable()
