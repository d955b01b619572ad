"""The parts of the layers: positions by the published formulas, and dropout."""

import itertools
import math

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn
from minigrad import functional as F

from tests.transformer.tiny import tiny_config
from transformer.model import EncoderLayer, SinusoidalPositions, sinusoid

# ------------------------------------------------------------------ positions


def interleaved(position, feature, d_model):
    """Vaswani et al. 2017, section 3.5."""
    angle = position / 10000 ** (2 * (feature // 2) / d_model)
    return math.sin(angle) if feature % 2 == 0 else math.cos(angle)


def halves(position, feature, d_model):
    """Tensor2Tensor: wavelengths from 2π to 10000·2π, both ends included; the sines first."""
    half = d_model // 2
    angle = position / 10000 ** ((feature % half) / max(1, half - 1))
    return math.sin(angle) if feature < half else math.cos(angle)


@pytest.mark.parametrize(("layout", "formula"), [("interleaved", interleaved), ("halves", halves)])
def test_sinusoid_is_the_formula_in_both_layouts_from_both_first_positions(layout, formula):
    for first, d_model in itertools.product((0, 1), (2, 6, 32)):
        table = sinusoid(20, d_model, layout, first)
        expected = [[formula(first + row, feature, d_model) for feature in range(d_model)] for row in range(20)]
        np.testing.assert_allclose(table, expected, rtol=0, atol=1e-13)
    assert SinusoidalPositions(5, 4)(3).dtype == np.float32


# ------------------------------------------------------------------ dropout


def features(*shape, requires_grad=False):
    return Tensor(np.random.default_rng(0).standard_normal((*shape, 8)), requires_grad=requires_grad)


def test_one_dropout_object_in_two_places_has_a_right_gradient():
    """Each place draws a mask and keeps it: the last one is not good for both."""
    dropout = nn.Dropout(0.5)
    x = features(4, 4, requires_grad=True)
    minigrad.gradcheck(lambda x: (dropout(dropout(x * x).tanh() + x) ** 2).sum(), x)
    with minigrad.random.fork(6):
        inner = dropout(x)
        outer = dropout(inner * 3)
    assert np.count_nonzero(outer.numpy()) < np.count_nonzero(inner.numpy())
    outer.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 12 * ((inner.numpy() != 0) & (outer.numpy() != 0)))


def test_dropout_is_where_the_design_has_it():
    """On the feed-forward's inner features, and each sublayer's output before it is added."""
    layer, x = EncoderLayer(tiny_config(dropout=0.25)).to(dtype=np.float64), features(2, 3)
    forward, residual = layer.feed_forward, layer.feed_forward_residual
    for part, expected in (
            (lambda: forward(x), lambda: forward.outer(F.dropout(F.relu(forward.inner(x)), 0.25))),
            (lambda: residual(x, lambda y: y), lambda: x + F.dropout(residual.norm(x), 0.25))):
        found = []
        for make in (part, expected):
            with minigrad.random.fork(1):
                found.append(make().numpy())
        np.testing.assert_array_equal(*found)
