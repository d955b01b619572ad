"""The figures themselves: what they leave behind, what they need, and characters that the usual font lacks."""

import sys

import matplotlib as mpl
import pytest

from transformer.explore.plots.figure import japanese_font, new_figure


def labelled(text):
    with new_figure((2, 2)) as figure:
        figure.subplots().set(title=text, xlabel=text)
        figure.text(0.5, 0.5, text)
    return figure


@pytest.mark.parametrize("text", ["私は学校へ行きます", "2021年9月1日(水)", "Größe, été, Ελλάδα, Дата", "␣ ▁ √d_k"])
def test_no_character_is_missing(text, tmp_path):
    """A missing one is a warning, and warnings are errors here."""
    labelled(text).savefig(tmp_path / "text.png")
    assert (tmp_path / "text.png").read_bytes()[:4] == b"\x89PNG"


def test_without_the_font_japanese_is_missed(monkeypatch, tmp_path):
    """So the test above can fail."""
    monkeypatch.setitem(sys.modules, "matplotlib_fontja", None)
    assert japanese_font() == []
    monkeypatch.setitem(mpl.rcParams, "font.family", ["DejaVu Sans"])
    with pytest.warns(UserWarning, match="Glyph .* missing from font"):
        labelled("私").savefig(tmp_path / "text.png")


def test_a_figure_belongs_to_no_window_and_settings_are_left_as_they_were():
    before = dict(mpl.rcParams)
    figure = labelled("私")
    assert dict(mpl.rcParams) == before
    assert figure.canvas.manager is None
    assert "matplotlib.pyplot" not in sys.modules or figure not in [
        sys.modules["matplotlib.pyplot"].figure(number) for number in sys.modules["matplotlib.pyplot"].get_fignums()]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install -e '\.\[plot\]'"):
        labelled("x")
