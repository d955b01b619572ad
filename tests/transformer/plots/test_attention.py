"""The picture of attention: what is drawn, what is refused; and the weights of the decoder's look at the source."""

import numpy as np
import pytest

import minigrad

from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer import trace
from transformer.explore.plots import cross_attention, plot_attention


def weights(heads, rows, columns):
    return np.random.default_rng(5).dirichlet(np.ones(columns), (heads, rows))


def test_attention_has_a_panel_for_each_head(tmp_path):
    attention = weights(3, 2, 4)
    figure = plot_attention(attention, ["a", " ", "$x$", "<eos>"], ["b", "<eos>"])
    assert [axes.get_title() for axes in figure.axes] == ["head 0", "head 1", "head 2"]
    for axes, head in zip(figure.axes, attention, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), head)
        assert axes.images[0].get_clim() == (0, 1)
        assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "␣", "$x$", "<eos>"]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "<eos>"]
    figure.savefig(tmp_path / "attention.png")  # a half formula, "$x", would be an error if it were read as one
    plot_attention(weights(1, 1, 2), ["$x", "y"], ["z"]).savefig(tmp_path / "dollar.png")


def test_attention_of_one_head_has_no_title():
    [axes] = plot_attention(weights(1, 2, 3)[0], "abc", "de").axes
    assert axes.get_title() == ""


def test_without_labels_there_are_numbers():
    [axes] = plot_attention(weights(1, 2, 3)).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1", "2"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1"]
    with pytest.raises(ValueError, match=r"labels for \(T, S\) = \(0, 0\); .* got \(3,\)"):
        plot_attention(np.zeros(3))


def test_a_traced_attention_is_drawn(device):
    model = tiny_model(device=device)
    with trace(model) as traced:
        model.loss(SOURCE, LABELS)
    traced_weights = traced["decoder.layers.0.cross_attention"].weights  # (2, 2, 4, 5)
    figure = plot_attention(traced_weights[1], "abcde", "wxyz")
    assert [axes.get_title() for axes in figure.axes] == ["head 0", "head 1"]
    for axes, head in zip(figure.axes, traced_weights.numpy()[1], strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), head)
    with pytest.raises(ValueError, match=r"got \(2, 2, 4, 5\) \(of a batch, take one item: weights\[0\]\)"):
        plot_attention(traced_weights, "abcde", "wxyz")


def test_weights_that_require_gradients_are_drawn():
    drawn = minigrad.Tensor([[0.25, 0.75]], requires_grad=True)
    [axes] = plot_attention(drawn, "ab", "c").axes
    np.testing.assert_array_equal(axes.images[0].get_array(), [[0.25, 0.75]])


def test_japanese_is_drawn_without_a_missing_character(tmp_path):
    """A missing one is a warning, and warnings are errors here."""
    source, target = "2021年9月1日(水)", "2021-09-01"
    plot_attention(weights(4, len(target), len(source)), source, target).savefig(tmp_path / "attention.png")
    assert (tmp_path / "attention.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("shape", [(2, 3), (3, 2, 1), (1, 1, 3, 2), (3,)])
def test_labels_that_do_not_fit(shape):
    with pytest.raises(ValueError, match=r"labels for \(T, S\) = \(3, 2\)"):
        plot_attention(np.zeros(shape), ["a", "b"], ["x", "y", "z"])


def test_cross_attention_is_what_the_layer_uses():
    """Against the attention layer itself, called with the input that it had."""
    model = tiny_model(num_decoder_layers=2).eval()
    source, target = [5, 3, 9, 7, 2], [6, 10, 2]
    for number, layer in enumerate(model.decoder.layers):
        caught = []
        original = layer.cross_attention.forward
        layer.cross_attention.forward = lambda *arguments, caught=caught, original=original, **rest: (
            caught.append(arguments), original(*arguments, **rest))[1]
        with minigrad.no_grad():
            model([source], [[1, 6, 10]])
            layer.cross_attention.forward = original
            _, expected = original(*caught[0], return_weights=True)
        found = cross_attention(model, source, target, layer=number)
        assert found.shape == (2, 3, 5)
        np.testing.assert_allclose(found, expected.numpy()[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.sum(axis=-1), 1, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found, cross_attention(model, source, target))  # the last layer by default


def test_cross_attention_of_a_layer_that_is_not_there():
    with pytest.raises(IndexError, match="the decoder has 1 layers, there is no layer 1"):
        cross_attention(tiny_model(), [5, 2], [6, 2], layer=1)


def test_cross_attention_on_any_device(device):
    model = tiny_model(device=device).eval()
    found = cross_attention(model, [5, 3, 2], [6, 2])
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, cross_attention(tiny_model().eval(), [5, 3, 2], [6, 2]), rtol=0, atol=1e-12)
