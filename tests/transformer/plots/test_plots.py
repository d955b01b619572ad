"""The pictures: what is drawn, what is refused, what is needed, and the numbers behind them."""

import sys

import numpy as np
import pytest

from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer import trace
from transformer.explore.plots import plot_attention, plot_history
from transformer.explore.plots.figure import new_figure


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"\[plot\]"), new_figure((2, 2)):
        pass


@pytest.mark.parametrize(("metric", "shown"), [("exact_match", [10, 20, pytest.approx(30)]), ("bleu", [0.1, 0.2, 0.3])])
def test_history_shows_the_losses_and_the_metric(metric, shown):
    """A BLEU is no share."""
    rows = [{"step": 100 * i, "train_loss": 3 / i, "valid_loss": 4 / i, "metric": i / 10} for i in (1, 2, 3)]
    left, right = plot_history(rows, metric).axes
    training, validation = left.get_lines()
    assert training.get_xdata().tolist() == [100, 200, 300]
    assert (training.get_ydata().tolist(), validation.get_ydata().tolist()) == ([3, 1.5, 1], [4, 2, 4 / 3])
    assert right.get_lines()[0].get_ydata().tolist() == shown


def labels(axis_labels):
    return [label.get_text() for label in axis_labels]


def test_a_traced_attention_has_a_panel_for_each_head(device, tmp_path):
    model = tiny_model(device=device)
    with trace(model) as traced:
        model.loss(SOURCE, LABELS)
    weights = traced["decoder.layers.0.cross_attention"].weights  # (2, 2, 4, 5)
    figure = plot_attention(weights[1], ["a", " ", "$x", "b", "<eos>"], "wxyz", title="$x")
    *panels, bar = figure.axes
    assert [axes.get_title() for axes in panels] == ["head 1", "head 2"]
    assert bar.get_ylim() == (0, 1)
    for axes, head in zip(panels, weights.numpy()[1], strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), head)
        assert axes.images[0].get_clim() == (0, 1)
        assert labels(axes.get_xticklabels()) == ["a", "␣", "$x", "b", "<eos>"]
        assert labels(axes.get_yticklabels()) == [*"wxyz"]
    figure.savefig(tmp_path / "attention.png")  # "$x" would be an error if it were read as a formula
    assert labels(plot_attention(weights[1], "abcde", "wxyz", "xyz.").axes[0].get_yticklabels())[0] == "w → x"
    with pytest.raises(ValueError, match=r"got \(2, 2, 4, 5\)"):
        plot_attention(weights, "abcde", "wxyz")
    with pytest.raises(ValueError, match="argument"):
        plot_attention(weights[1], "abcde", "wxyz", "xyz.!")
