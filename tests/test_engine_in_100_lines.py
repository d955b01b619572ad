"""docs/engine_in_100_lines.py runs, and gives minigrad's gradients to every order."""

import contextlib
import gc
import io
import runpy
import types
import weakref
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg

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


VALUES = {"x": (2, 3), "w": (3, 4), "row": (4,), "column": (2, 1)}


def small_expression(x, w, row, column, tanh):
    return tanh(x @ w + row) * column * 2 - x @ w @ ((1 - row) * (x @ w)).T @ (tanh(column) * x @ w)


def derivatives(make, tanh, grad, total):
    """The value, and three orders of derivatives with respect to everything, along fixed directions."""
    draw = np.random.default_rng(1)
    inputs = [make(draw.normal(size=shape)) for shape in VALUES.values()]
    output, results = total(small_expression(*inputs, tanh)), []
    for order in (1, 2, 3):
        gradients = grad(output, inputs, order < 3)
        results += gradients
        if order < 3:
            weighted = [total(gradient * draw.normal(size=gradient.shape)) for gradient in gradients]
            output = weighted[0] + weighted[1] + weighted[2] + weighted[3]
    return results


def test_gradients_are_those_of_minigrad_to_third_order(page):
    ours = derivatives(lambda x: mg.Tensor(x, requires_grad=True), mg.tanh,
                       lambda output, inputs, more: mg.grad(output, inputs, create_graph=more), lambda x: x.sum())
    theirs = derivatives(lambda x: page.Tensor(x, requires_grad=True), page.tanh,
                         lambda output, inputs, more: page.grad(output, inputs, create_graph=more),
                         lambda x: page.sum_to(x, ()))
    assert len(ours) == len(theirs) == 12
    for our, their in zip(ours, theirs, strict=True):
        expected = our.detach().numpy()
        assert their.shape == expected.shape
        np.testing.assert_allclose(getattr(their, "data", their), expected, rtol=1e-11, atol=1e-11)
        assert np.abs(expected).max() > 1e-3


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
