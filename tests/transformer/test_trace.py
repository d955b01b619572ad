"""What a trace of attention gives: the numbers of the forward, and gradients that finite differences confirm."""

import numpy as np
import pytest

import minigrad as mg

from tests.transformer.tiny import LABELS, SOURCE
from tests.transformer.traces import KINDS, made, traced
from transformer.explore.traced import TAPS


def pulled_back(norm, x, gradient):
    """The gradient of x where norm(x) has `gradient`."""
    x = mg.Tensor(x, requires_grad=True)
    return mg.grad((norm(x) * mg.Tensor(gradient)).sum(), x).numpy()


@pytest.fixture(scope="module", ids=str, params=[
    ("pre", 0.3), ("post", 0.0), pytest.param(("post", 0.3), marks=pytest.mark.slow)])
def example(request):
    norm, dropout = request.param
    model = made(norm=norm, dropout=dropout)
    return model, *traced(model)


@pytest.mark.parametrize("name", KINDS)
def test_every_gradient_is_that_of_finite_differences(example, name):
    """Two directions: the smallest slope of one may hide an error that the other shows."""
    _, t, loss = example
    rng = np.random.default_rng(7)
    for tap in TAPS:
        gradient = t[name].gradient(tap).numpy()
        for _ in range(2):
            direction = rng.choice([-1.0, 1.0], gradient.shape) / np.sqrt(gradient.size)
            numeric = t.finite_difference(loss, name, tap, direction)
            scale = max(abs(gradient).max(), 1e-4)
            assert abs(numeric - (gradient * direction).sum()) <= 1e-6 * scale, tap


def test_a_gradient_that_is_slightly_wrong_is_found(example):
    _, t, loss = example
    name = "decoder.layers.1.cross_attention"
    gradient = t[name].gradient("values").numpy()
    direction = np.sign(gradient)
    numeric = t.finite_difference(loss, name, "values", direction)
    assert abs(numeric / (gradient * direction).sum() - 1) < 1e-8
    assert abs(numeric / (1.0001 * gradient * direction).sum() - 1) > 9e-5


def test_masks_are_those_of_the_batch(example):
    _, t, _ = example
    real = SOURCE != 0
    for name in t:
        a = t[name]
        if a.kind == "cross" or a.kind == "encoder self":
            expected = np.broadcast_to(real[:, None, None, :], a.scores.shape)
        else:
            read = np.hstack([[[True]] * 2, (LABELS != 0)[:, :-1]])  # the labels, shifted
            expected = np.broadcast_to(np.tri(4, dtype=bool) & read[:, None, None, :], a.scores.shape)
        np.testing.assert_array_equal(a.mask, expected)
        np.testing.assert_array_equal(a.mask, ~np.isneginf(a.masked.numpy()))
        assert (a.dropped is None) == (a.p == 0)


def test_the_residual_around(example):
    """Pre-norm: x gets what arrives above and what comes back through the norm. Post-norm: norm first, then the sum."""
    model, t, _ = example
    for name in t:
        a = t[name]
        around = a.residual
        assert around.module is dict(model.named_modules())[name + "_residual"]
        paths = a.gradient("query_input").numpy()
        if a.is_self:
            paths = paths + a.gradient("key_input").numpy() + a.gradient("value_input").numpy()
        stream, arrives, norm = around.stream.numpy(), around.result.grad.numpy(), around.module.norm
        if around.module.pre:
            np.testing.assert_allclose(norm(around.stream).numpy(), a.query_input.numpy(), rtol=1e-12)
            expected = arrives + pulled_back(norm, stream, paths)
        elif around.module.dropout.p == 0:  # with dropout the sum before the norm is not known here
            expected = pulled_back(norm, stream + a.output.numpy(), arrives) + paths
        else:
            continue
        np.testing.assert_allclose(around.stream.grad.numpy(), expected, rtol=1e-9, atol=1e-14)
