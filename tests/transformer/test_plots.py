"""The pictures: what is drawn, what is refused, and that nothing is left behind."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

import minigrad

from tests.transformer.tiny import tiny_model
from transformer.plots import cross_attention, plot_attention, plot_history

ROWS = [{"step": 100 * i, "train_loss": 3 / i, "valid_loss": 4 / i, "metric": i / 10} for i in (1, 2, 3)]


def weights(heads, rows, columns):
    return np.random.default_rng(5).dirichlet(np.ones(columns), (heads, rows))


def test_history_shows_the_losses_and_the_metric():
    left, right = plot_history(ROWS).axes
    training, validation = left.get_lines()
    assert training.get_xdata().tolist() == [100, 200, 300]
    assert training.get_ydata().tolist() == [3, 1.5, 1]
    assert validation.get_ydata().tolist() == [4, 2, 4 / 3]
    assert right.get_lines()[0].get_ydata().tolist() == [10, 20, pytest.approx(30)]
    assert "exact match (%)" in right.get_title()


def test_history_from_a_file(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,train_loss,valid_loss,metric,seconds\n10,2.5,2,31.5,1\n20,1.5,1,33.5,2\n", encoding="utf-8")
    figure = plot_history(path, metric="bleu")
    assert figure.axes[1].get_lines()[0].get_ydata().tolist() == [31.5, 33.5]
    assert "BLEU" in figure.axes[1].get_title()


def test_history_of_nothing_is_refused():
    with pytest.raises(ValueError, match="the log has no rows yet"):
        plot_history([])
    with pytest.raises(ValueError, match="metric must be one of exact_match, bleu, got 'wer'"):
        plot_history(ROWS, metric="wer")


def test_attention_has_a_panel_for_each_head(tmp_path):
    attention = weights(3, 2, 4)
    figure = plot_attention(attention, ["a", " ", "$x$", "<eos>"], ["b", "<eos>"])
    assert [axes.get_title() for axes in figure.axes] == ["head 1", "head 2", "head 3"]
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


def test_japanese_is_drawn_without_a_missing_character(tmp_path):
    """A missing one is a warning, and warnings are errors here."""
    source, target = "2021年9月1日(水)", "2021-09-01"
    plot_attention(weights(4, len(target), len(source)), source, target).savefig(tmp_path / "attention.png")
    assert (tmp_path / "attention.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("shape", [(2, 3), (3, 2, 1), (1, 1, 3, 2), (3,)])
def test_labels_that_do_not_fit(shape):
    with pytest.raises(ValueError, match=r"labels for \(T, S\) = \(3, 2\)"):
        plot_attention(np.zeros(shape), ["a", "b"], ["x", "y", "z"])


def test_settings_are_left_as_they_were():
    before = dict(mpl.rcParams)
    plot_history(ROWS)
    plot_attention(weights(1, 1, 1), "a", "b")
    assert dict(mpl.rcParams) == before


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'minigrad\[plot\]'"):
        plot_history(ROWS)


def test_cross_attention_is_what_the_layer_uses():
    """Against the attention layer itself, called with the input that it had."""
    model = tiny_model(num_decoder_layers=2).eval()
    source, target = [5, 3, 9, 7, 2], [6, 10, 2]
    for number, layer in enumerate(model.decoder.layers):
        caught = []
        original = layer.cross_attention.forward
        layer.cross_attention.forward = lambda *arguments, caught=caught, original=original: (
            caught.append(arguments), original(*arguments))[1]
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
