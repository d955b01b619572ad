"""The pictures: what is drawn, what is refused, what is needed, and the numbers behind them."""

import sys

import numpy as np
import pytest

from minigrad import Tensor

from transformer.explore.plots import plot_attention, plot_history
from transformer.explore.plots.figure import new_figure


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"\[plot\]"), new_figure((2, 2)):
        pass


def test_history_shows_the_losses_and_the_metric():
    """Exact matches as a share, which BLEU is not."""
    rows = [{"step": 100 * i, "train_loss": 3 / i, "valid_loss": 4 / i, "metric": i / 10} for i in (1, 2)]
    left, right = plot_history(rows, "exact_match").axes
    lines = [*left.get_lines(), *right.get_lines()]
    assert [line.get_xdata().tolist() for line in lines] == [[100, 200]] * 3
    assert [line.get_ydata().tolist() for line in lines] == [[3, 1.5], [4, 2], [10, 20]]
    assert plot_history(rows, "bleu").axes[1].get_lines()[0].get_ydata().tolist() == [0.1, 0.2]


def labels(axis_labels):
    return [label.get_text() for label in axis_labels]


def test_an_attention_has_a_panel_for_each_head(tmp_path):
    weights = np.random.default_rng(0).dirichlet(np.ones(5), (2, 4))
    figure = plot_attention(Tensor(weights), ["a", " ", r"$\x$", "b", "<eos>"], "wxyz", "xyz.", title=r"$\x$")
    *panels, bar = figure.axes
    assert bar.get_ylim() == (0, 1)
    for axes, head in zip(panels, weights, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), head)
        assert axes.images[0].get_clim() == (0, 1)
        assert labels(axes.get_xticklabels()) == ["a", "␣", r"$\x$", "b", "<eos>"]
        assert labels(axes.get_yticklabels()) == ["w → x", "x → y", "y → z", "z → ."]
    figure.savefig(tmp_path / "attention.png")  # read as a formula it would be an error
    for wrong in (weights[0], weights[:, 1:]):
        with pytest.raises(ValueError, match=r"weights of shape \(H, T, S\)"):
            plot_attention(wrong, "abcde", "wxyz")
