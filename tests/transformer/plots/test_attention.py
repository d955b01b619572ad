"""The picture of attention: what is drawn, what is refused; and the weights of the decoder's look at the source."""

import numpy as np
import pytest

import minigrad

from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer import trace
from transformer.explore.plots import cross_attention, plot_attention


def weights(heads, rows, columns):
    return np.random.default_rng(5).dirichlet(np.ones(columns), (heads, rows))


def labels(axis_labels):
    return [label.get_text() for label in axis_labels]


def test_attention_has_a_panel_for_each_head(tmp_path):
    attention = weights(3, 2, 4)
    figure = plot_attention(attention, ["a", " ", "$x", "<eos>"], ["b", "<eos>"])
    assert [axes.get_title() for axes in figure.axes] == ["head 0", "head 1", "head 2"]
    for axes, head in zip(figure.axes, attention, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), head)
        assert axes.images[0].get_clim() == (0, 1)
        assert labels(axes.get_xticklabels()) == ["a", "␣", "$x", "<eos>"]
        assert labels(axes.get_yticklabels()) == ["b", "<eos>"]
    figure.savefig(tmp_path / "attention.png")  # "$x" would be an error if it were read as a formula


def test_a_traced_attention_is_drawn(device):
    model = tiny_model(device=device)
    with trace(model) as traced:
        model.loss(SOURCE, LABELS)
    traced_weights = traced["decoder.layers.0.cross_attention"].weights  # (2, 2, 4, 5)
    figure = plot_attention(traced_weights[1], "abcde", "wxyz")
    for axes, head in zip(figure.axes, traced_weights.numpy()[1], strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), head)
    with pytest.raises(ValueError, match=r"got \(2, 2, 4, 5\)"):
        plot_attention(traced_weights, "abcde", "wxyz")


def test_labels_that_do_not_fit():
    with pytest.raises(ValueError, match=r"\(T, S\) = \(3, 2\)"):
        plot_attention(np.zeros((2, 3)), ["a", "b"], ["x", "y", "z"])


def test_cross_attention_is_what_the_layer_uses(device):
    """Against what a trace of the model shows."""
    model = tiny_model(num_decoder_layers=2, device=device).eval()
    with minigrad.no_grad(), trace(model) as traced:
        model([[5, 3, 9, 7, 2]], [[1, 6, 10]])
    for number in range(2):
        found = cross_attention(model, [5, 3, 9, 7, 2], [6, 10, 2], layer=number)
        expected = traced[f"decoder.layers.{number}.cross_attention"].weights.numpy()[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found, cross_attention(model, [5, 3, 9, 7, 2], [6, 10, 2]))  # the last by default
    with pytest.raises(IndexError, match="layer 2"):
        cross_attention(model, [5, 2], [6, 2], layer=2)
