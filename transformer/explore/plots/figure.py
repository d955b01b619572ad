"""Figures that need no window, and a font for Japanese characters.

matplotlib is imported when a figure is made; the extra ``plot`` installs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from transformer.data.extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def new_figure(size: tuple[float, float]) -> Iterator[Figure]:
    """A new figure of ``size`` in inches; texts that the block draws may be Japanese.

    Nothing is shown, and matplotlib's settings do not change.

    Raises:
        ImportError: matplotlib is not installed.
    """
    matplotlib, figure = (require(name, "a plot", "plot") for name in ("matplotlib", "matplotlib.figure"))
    with matplotlib.rc_context():
        matplotlib.rcParams["font.family"] = [*matplotlib.rcParams["font.family"], *japanese_font()]
        yield figure.Figure(figsize=size, layout="constrained")


def japanese_font() -> list[str]:
    """The name of the font for Japanese, if it is installed; without it such characters are drawn as boxes."""
    from matplotlib import rc_context
    from matplotlib.font_manager import FontProperties

    try:
        with rc_context():  # the first import registers the font, and makes it the only one
            from matplotlib_fontja import get_font_ttf_path
    except ImportError:
        return []
    return [FontProperties(fname=get_font_ttf_path()).get_name()]
