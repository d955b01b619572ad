"""docs/engine_in_100_lines.py runs, and its gradients are right, to third order."""

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


def test_the_third_derivative(page):
    x = page.Tensor(np.array(0.7), requires_grad=True)
    y = page.tanh(x)
    for _ in range(2):
        (y,) = page.grad(y, [x], create_graph=True)
    t = np.tanh(0.7)
    np.testing.assert_allclose(page.grad(y, [x])[0], -2 * (1 - t * t) * (1 - 3 * t * t), rtol=1e-13)


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
