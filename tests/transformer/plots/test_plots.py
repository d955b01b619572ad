"""The pictures: what is drawn, what is refused, what is needed, and the numbers behind them."""

import sys

import numpy as np
import pytest

from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer import trace
from transformer.explore.plots import plot_attention, plot_history
from transformer.explore.plots.figure import new_figure

# --------------------------------------------------------------------------- figures


def labelled(text):
    with new_figure((2, 2)) as figure:
        figure.subplots().set(title=text, xlabel=text)
        figure.text(0.5, 0.5, text)
    return figure


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"\[plot\]"):
        labelled("x")


ROWS = [{"step": 100 * i, "train_loss": 3 / i, "valid_loss": 4 / i, "metric": i / 10} for i in (1, 2, 3)]


def test_history_shows_the_losses_and_the_metric():
    left, right = plot_history(ROWS).axes
    training, validation = left.get_lines()
    assert training.get_xdata().tolist() == [100, 200, 300]
    assert training.get_ydata().tolist() == [3, 1.5, 1]
    assert validation.get_ydata().tolist() == [4, 2, 4 / 3]
    assert right.get_lines()[0].get_ydata().tolist() == [10, 20, pytest.approx(30)]
    right = plot_history(ROWS, metric="bleu").axes[1]
    assert right.get_lines()[0].get_ydata().tolist() == [0.1, 0.2, 0.3]  # a BLEU is no share


# --------------------------------------------------------------------------- attention


def weights(heads, rows, columns):
    return np.random.default_rng(5).dirichlet(np.ones(columns), (heads, rows))


def labels(axis_labels):
    return [label.get_text() for label in axis_labels]


def test_attention_has_a_panel_for_each_head(tmp_path):
    attention = weights(3, 2, 4)
    figure = plot_attention(attention, ["a", " ", "$x", "<eos>"], ["b", "<eos>"], title="$x")
    *panels, bar = figure.axes
    assert [axes.get_title() for axes in panels] == ["head 0", "head 1", "head 2"]
    assert bar.get_ylim() == (0, 1)
    for axes, head in zip(panels, attention, strict=True):
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
    for axes, head in zip(figure.axes[:-1], traced_weights.numpy()[1], strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), head)
    with pytest.raises(ValueError, match=r"got \(2, 2, 4, 5\)"):
        plot_attention(traced_weights, "abcde", "wxyz")
