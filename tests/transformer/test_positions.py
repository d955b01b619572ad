"""Positions: the published formulas by hand, offsets, limits, and what the model does without them."""

import math

import numpy as np
import pytest

import minigrad

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


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("d_model", [2, 6, 8, 32])
@pytest.mark.parametrize(("layout", "formula"), [("interleaved", interleaved), ("halves", halves)])
def test_sinusoid_is_the_formula_in_both_layouts_from_both_first_positions(layout, formula, d_model, first):
    table = sinusoid(40, d_model, layout, first)
    expected = [[formula(first + row, feature, d_model) for feature in range(d_model)] for row in range(40)]
    np.testing.assert_allclose(table, expected, rtol=0, atol=1e-13)


def test_a_few_values_by_hand():
    np.testing.assert_array_equal(sinusoid(1, 4), [[0, 1, 0, 1]])
    np.testing.assert_allclose(
        sinusoid(1, 4, "interleaved", 1), [[math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)]], rtol=1e-12
    )
    np.testing.assert_allclose(
        sinusoid(1, 4, "halves", 1), [[math.sin(1), math.sin(1e-4), math.cos(1), math.cos(1e-4)]], rtol=1e-12
    )


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
        with pytest.raises(ValueError, match="a sequence of 6 tokens is longer than the model's 5 positions"):
            positions(length, offset)


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_too_long_a_source_or_target_is_refused_by_the_model(kind):
    model = tiny_model(max_length=4, positions=kind)
    fits, too_long = np.full((2, 4), 5), np.full((2, 5), 5)
    assert model.loss(fits, fits).shape == ()
    for source, labels in ((too_long, fits), (fits, too_long)):
        with pytest.raises(ValueError, match=r"5 tokens is longer than the model's 4 positions \(max_length\)"):
            model.loss(source, labels)


def test_without_positions_the_encoder_is_equivariant_to_permutations():
    model = tiny_model(num_encoder_layers=2)
    ids, order = np.array([[5, 3, 9, 7, 2]]), np.array([4, 1, 0, 3, 2])
    with minigrad.no_grad():
        assert abs(model.encode(ids[:, order]).numpy() - model.encode(ids).numpy()[:, order]).max() > 0.1
        model.encoder.embedding.positions.table.copy_(0.0)
        expected = model.encode(ids).numpy()[:, order]
        np.testing.assert_allclose(model.encode(ids[:, order]).numpy(), expected, rtol=0, atol=1e-13)
