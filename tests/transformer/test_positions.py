"""Positions: the published formulas by hand, offsets and limits."""

import itertools
import math

import numpy as np
import pytest

from tests.transformer.tiny import tiny_model
from transformer.model import LearnedPositions, SinusoidalPositions, sinusoid


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


def test_the_module_reads_rows_from_an_offset():
    positions = SinusoidalPositions(10, 6, "halves", 1)
    np.testing.assert_array_equal(positions(4, offset=3).numpy(), sinusoid(7, 6, "halves", 1)[3:].astype(np.float32))
    assert positions(4).dtype == np.float32
    assert not list(positions.parameters())
    assert not positions.state_dict()  # what the configuration gives is not saved


def test_learned_positions_are_a_parameter_whose_used_rows_learn():
    positions = LearnedPositions(6, 4)
    (positions(3, offset=2) * 2).sum().backward()
    expected = np.zeros((6, 4))
    expected[2:5] = 2
    np.testing.assert_array_equal(positions.table.grad.numpy(), expected)
    assert list(positions.state_dict()) == ["table"]


@pytest.mark.parametrize("positions", [SinusoidalPositions(5, 4), LearnedPositions(5, 4)])
def test_a_sequence_that_is_too_long_is_refused_with_both_lengths(positions):
    assert positions(5).shape == (5, 4)
    assert positions(2, offset=3).shape == (2, 4)
    for length, offset in ((6, 0), (3, 3)):
        with pytest.raises(ValueError, match=r"6 tokens .* 5 positions"):
            positions(length, offset)


def test_too_long_a_source_or_target_is_refused_by_the_model():
    model = tiny_model(max_length=4)
    fits, too_long = np.full((2, 4), 5), np.full((2, 5), 5)
    assert model.loss(fits, fits).shape == ()
    for source, labels in ((too_long, fits), (fits, too_long)):
        with pytest.raises(ValueError, match=r"5 tokens .* 4 positions"):
            model.loss(source, labels)
