"""The figures themselves, and the curves of a training run: what is drawn, what is refused, what is needed."""

import sys

import matplotlib as mpl
import pytest

from transformer.explore.plots import plot_history
from transformer.explore.plots.figure import japanese_font, new_figure


def labelled(text):
    with new_figure((2, 2)) as figure:
        figure.subplots().set(title=text, xlabel=text)
        figure.text(0.5, 0.5, text)
    return figure


def test_no_character_is_missing(monkeypatch, tmp_path):
    """A missing one is a warning, and warnings are errors here."""
    before = dict(mpl.rcParams)
    for text in ("私は学校へ行きます 2021年9月1日(水)", "Größe, été, Ελλάδα, Дата", "␣ ▁ √d_k"):
        figure = labelled(text)
        figure.savefig(tmp_path / "text.png")
    assert dict(mpl.rcParams) == before
    assert figure.canvas.manager is None  # it belongs to no window
    monkeypatch.setitem(sys.modules, "matplotlib_fontja", None)
    assert japanese_font() == []


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"\[plot\]"):
        labelled("x")


ROWS = [{"step": 100 * i, "train_loss": 3 / i, "valid_loss": 4 / i, "metric": i / 10} for i in (1, 2, 3)]


def test_history_shows_the_losses_and_the_metric(tmp_path):
    left, right = plot_history(ROWS).axes
    training, validation = left.get_lines()
    assert training.get_xdata().tolist() == [100, 200, 300]
    assert training.get_ydata().tolist() == [3, 1.5, 1]
    assert validation.get_ydata().tolist() == [4, 2, 4 / 3]
    assert right.get_lines()[0].get_ydata().tolist() == [10, 20, pytest.approx(30)]
    path = tmp_path / "log.csv"
    path.write_text("step,train_loss,valid_loss,metric,seconds\n10,2.5,2,31.5,1\n20,1.5,1,33.5,2\n", encoding="utf-8")
    for given in (path, str(tmp_path)):  # the folder of a run has its log
        right = plot_history(given, metric="bleu").axes[1]
        assert right.get_lines()[0].get_ydata().tolist() == [31.5, 33.5]  # a BLEU is no share


def test_history_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no rows"):
        plot_history([])
    with pytest.raises(ValueError, match="'wer'"):
        plot_history(ROWS, metric="wer")
