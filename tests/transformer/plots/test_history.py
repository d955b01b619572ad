"""The curves of a training run: what is drawn, and what is refused."""

import pytest

from transformer.explore.plots import plot_history

ROWS = [{"step": 100 * i, "train_loss": 3 / i, "valid_loss": 4 / i, "metric": i / 10} for i in (1, 2, 3)]


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
    for given in (path, tmp_path, str(tmp_path)):  # the folder of a run has its log
        figure = plot_history(given, metric="bleu")
        assert figure.axes[1].get_lines()[0].get_ydata().tolist() == [31.5, 33.5]
        assert "BLEU" in figure.axes[1].get_title()


def test_history_of_nothing_is_refused():
    with pytest.raises(ValueError, match="the log has no rows yet"):
        plot_history([])
    with pytest.raises(ValueError, match="metric must be one of exact_match, bleu, got 'wer'"):
        plot_history(ROWS, metric="wer")
