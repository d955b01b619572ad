"""Plots of attention weights."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minigrad import Tensor

from transformer.explore.labels import columns_of, names, row_names
from transformer.explore.plots.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SQUARE, SMALLEST = 0.2, 0.12  # inches of a weight, and of one where a sentence is long
ROOM = 12.0  # inches that a panel's squares take, until the smallest take more
LETTER, TITLE_LETTER, MARGIN = 0.09, 0.11, 0.25  # inches: of a letter of a label and of the title; around a panel
WIDE = 18.0  # inches of a figure; in a wider one, which is shown smaller, the titles are larger
SHAPE = 1.5  # width of a figure by its height, as near as the number of panels allows


def plot_attention(weights: Tensor | NDArray[np.floating[Any]], source_tokens: Sequence[str],
                   target_tokens: Sequence[str], written_tokens: Sequence[str] | None = None,
                   title: str = "Attention weights") -> Figure:
    """Attention weights as grey squares, one panel for each head, counted from 0: black is 1.

    Rows and columns have the names of transformer/explore/labels.py.

    Args:
        weights: (H, T, S), or (T, S) for a single panel: an array or a Tensor. A trace has those of a whole batch; take
            one item: ``t["decoder.layers.0.cross_attention"].weights[0]``.
        source_tokens: the S tokens of the columns, the keys.
        target_tokens: the T tokens of the rows, the queries.
        written_tokens: of a decoder, which reads the target tokens, those that it is to write next: a row then is
            "read → written". None: the tokens of the rows alone name them.
        title: the title of the figure.

    Raises:
        ValueError: the tokens do not fit the weights.
        ImportError: matplotlib is not installed.
    """
    weights = weights.detach().numpy() if isinstance(weights, Tensor) else np.asarray(weights)
    read, keys = list(target_tokens), list(source_tokens)
    expected = (len(read), len(keys))
    if weights.ndim not in (2, 3) or weights.shape[-2:] != expected:
        raise ValueError(f"plot_attention: there are labels for (T, S) = {expected}; weights of that shape or "
                         f"(H, T, S) expected, got {weights.shape}")
    if written_tokens is not None and len(written_tokens) != len(read):
        raise ValueError(f"plot_attention: {len(read)} tokens to write expected, one for each row, got "
                         f"{len(written_tokens)}")
    down, across = names(read) if written_tokens is None else row_names(read, written_tokens), names(keys)
    heads = weights if weights.ndim == 3 else weights[None]
    square = max(SMALLEST, min(SQUARE, ROOM / max(1, *expected)))
    rows, columns, width, height = _arranged(len(heads), square, down, across)
    larger = max(1.0, width / WIDE)
    title = _wrapped(title, width / larger)
    with new_figure((width, height + 0.25 * larger * (1 + title.count("\n")))) as figure:
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        for number, (axes, head) in enumerate(zip(panels, heads, strict=False)):
            image = axes.imshow(head, cmap="Greys", vmin=0, vmax=1)
            _label(axes, across, down, 45 * square)
            if len(heads) > 1:
                axes.set_title(f"head {number}", fontsize=10 * larger)
        for axes in panels[len(heads):]:
            axes.remove()
        figure.suptitle(title, fontsize=12 * larger, parse_math=False)
        figure.supxlabel("keys: tokens looked at", fontsize=10 * larger)
        figure.supylabel("queries" if written_tokens is None else "queries: read → to be written", fontsize=10 * larger)
        bar = figure.colorbar(image, ax=panels[:len(heads)], aspect=30, fraction=0.05, pad=0.02)
        bar.set_label("weight", fontsize=10 * larger)
        bar.ax.tick_params(labelsize=9 * larger)
    return figure


def _arranged(heads: int, square: float, down: Sequence[str], across: Sequence[str]) -> tuple[int, int, float, float]:
    """The rows and the columns of panels, and the width and the height of them all, in inches, without the title."""
    wide = square * len(across) + LETTER * max(map(columns_of, down), default=0) + MARGIN
    high = square * len(down) + LETTER * max(map(columns_of, across), default=0) + 2 * MARGIN
    columns = max(1, min(heads, round(math.sqrt(heads * SHAPE * high / wide))))
    rows = math.ceil(heads / columns)
    # Beside them, room for the titles of the axes and for the colour bar, which are as long as the smallest figure.
    return rows, columns, max(4.0, columns * wide + 1.2), max(2.8, rows * high + 0.4)


def _label(axes: Axes, across: Sequence[str], down: Sequence[str], size: float) -> None:
    """Name the columns and the rows of a panel; parse_math=False keeps a dollar sign from beginning a formula."""
    axes.set_xticks(range(len(across)), across, parse_math=False)
    axes.set_yticks(range(len(down)), down, parse_math=False)
    axes.tick_params(length=0, labelsize=size)
    for label in axes.get_xticklabels():
        label.set_rotation(90 if columns_of(label.get_text()) > 2 else 0)


def _wrapped(title: str, inches: float) -> str:
    """The title, in as many lines as it needs in a figure of that width."""
    lines = math.ceil(columns_of(title) * TITLE_LETTER / inches)
    return textwrap.fill(title, math.ceil(len(title) / max(1, lines)) + 8, break_on_hyphens=False)
