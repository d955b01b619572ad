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
    from matplotlib.figure import Figure


SQUARE, SMALLEST = 0.2, 0.12  # inches of a weight, and of one where a sentence is long
ROOM = 12.0  # inches that a panel's squares take, until the smallest take more
LETTER, TITLE_LETTER = 0.09, 0.11  # inches: of a letter of a label, and of the title


def plot_attention(weights: Tensor | NDArray[np.floating[Any]], source_tokens: Sequence[str],
                   target_tokens: Sequence[str], written_tokens: Sequence[str] | None = None,
                   title: str = "Attention weights") -> Figure:
    """Attention weights as grey squares, one panel for each head, counted from 1: black is 1.

    Rows and columns have the names of transformer/explore/labels.py.

    Args:
        weights: (H, T, S), an array or a Tensor. A trace has those of a whole batch; take
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
    across = names(source_tokens)
    down = names(target_tokens) if written_tokens is None else row_names(target_tokens, written_tokens)
    expected = (len(down), len(across))
    if weights.ndim != 3 or weights.shape[1:] != expected:
        raise ValueError(f"plot_attention: there are labels for (T, S) = {expected}; weights of shape (H, T, S) "
                         f"expected, got {weights.shape}")
    square = max(SMALLEST, min(SQUARE, ROOM / max(1, *expected)))
    columns = math.ceil(math.sqrt(len(weights)))
    rows = math.ceil(len(weights) / columns)
    widest, longest = (max(map(columns_of, labels), default=0) for labels in (down, across))
    # Beside the squares, room for the labels; beside the panels, for the titles of the axes and for the colour bar.
    width = max(4.0, columns * (square * len(across) + LETTER * widest + 0.5) + 1.2)
    height = max(2.8, rows * (square * len(down) + LETTER * longest + 0.5) + 0.7)
    with new_figure((width, height)) as figure:
        for number, head in enumerate(weights, start=1):
            axes = figure.add_subplot(rows, columns, number)
            image = axes.imshow(head, cmap="Greys", vmin=0, vmax=1)
            # A dollar sign begins no formula.
            axes.set_xticks(range(len(across)), across, parse_math=False, rotation=90 if longest > 2 else 0)
            axes.set_yticks(range(len(down)), down, parse_math=False)
            axes.tick_params(length=0, labelsize=45 * square)
            axes.set_title(f"head {number}", fontsize=10)
        figure.suptitle(textwrap.fill(title, int(width / TITLE_LETTER)), parse_math=False)
        figure.supxlabel("keys: tokens looked at", fontsize=10)
        figure.supylabel("queries" if written_tokens is None else "queries: read → to be written", fontsize=10)
        figure.colorbar(image, ax=figure.axes, fraction=0.05, label="weight")
    return figure
