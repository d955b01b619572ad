"""Pictures: the curves of a training run, and who attends to whom.

The figures belong to no window: ``figure.savefig("picture.png")`` works without a display, and a notebook shows them.
matplotlib is imported when a figure is made; the extra ``plot`` brings it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minigrad import Tensor, no_grad, tapping

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transformer.model import Transformer

_METRICS = {"exact_match": ("exact match (%)", 100.0), "bleu": ("BLEU", 1.0)}


def plot_history(log: str | PathLike[str] | Sequence[Mapping[str, Any]], metric: str = "exact_match") -> Figure:
    """The losses and the validation metric of a training run, over its steps.

    Args:
        log: the path of a ``log.csv``, or its rows.
        metric: what the column "metric" holds, "exact_match" or "bleu".

    Raises:
        ValueError: the log is empty, or the metric unknown.
        ImportError: matplotlib is not installed.
    """
    if metric not in _METRICS:
        raise ValueError(f"plot_history: metric must be one of {', '.join(_METRICS)}, got {metric!r}")
    if isinstance(log, str | PathLike):
        with open(log, newline="", encoding="utf-8") as file:
            log = list(csv.DictReader(file))
    if not log:
        raise ValueError("plot_history: the log has no rows yet")
    label, scale = _METRICS[metric]
    columns = {name: [float(row[name]) for row in log] for name in ("step", "train_loss", "valid_loss", "metric")}
    marker = "o" if len(log) < 20 else ""
    with _figure((9, 3.5)) as figure:
        left, right = figure.subplots(1, 2)
        left.plot(columns["step"], columns["train_loss"], color="C0", marker=marker, label="training")
        left.plot(columns["step"], columns["valid_loss"], color="C1", marker=marker, label="validation")
        left.set(title="loss (nats per target token)", xlabel="step")
        left.legend()
        right.plot(columns["step"], [scale * value for value in columns["metric"]], color="C2", marker=marker)
        right.set(title=f"validation: {label}", xlabel="step")
        for axes in (left, right):
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
    return figure


def plot_attention(weights: NDArray[np.floating[Any]], source_tokens: Sequence[str],
                   target_tokens: Sequence[str]) -> Figure:
    """Attention weights as grey squares, one panel for each head: black is 1.

    Args:
        weights: (H, T, S), or (T, S) for a single panel.
        source_tokens: labels of the S columns.
        target_tokens: labels of the T rows.

    Raises:
        ValueError: the labels do not fit the weights.
        ImportError: matplotlib is not installed.
    """
    weights = np.asarray(weights)
    expected = (len(target_tokens), len(source_tokens))
    if weights.ndim not in (2, 3) or weights.shape[-2:] != expected:
        raise ValueError(f"plot_attention: there are labels for (T, S) = {expected}; weights of that shape or "
                         f"(H, T, S) expected, got {weights.shape}")
    heads = weights if weights.ndim == 3 else weights[None]
    # A blank would not be seen; and a dollar sign is no formula here.
    across, down = ([token.replace(" ", "␣") for token in tokens] for tokens in (source_tokens, target_tokens))
    columns = math.ceil(math.sqrt(len(heads)))
    rows = math.ceil(len(heads) / columns)
    width, height = 0.8 + 0.2 * expected[1], 0.9 + 0.2 * expected[0]  # of a panel, in inches
    with _figure((columns * max(2.0, width), rows * max(2.0, height))) as figure:
        panels = figure.subplots(rows, columns, squeeze=False).flat
        for number, (axes, head) in enumerate(zip(panels, heads, strict=False), start=1):
            axes.imshow(head, cmap="Greys", vmin=0, vmax=1)
            axes.set_xticks(range(expected[1]), across, parse_math=False)
            axes.set_yticks(range(expected[0]), down, parse_math=False)
            axes.tick_params(length=0, labelsize=9)
            for label in axes.get_xticklabels():
                label.set_rotation(90 if len(label.get_text()) > 2 else 0)
            if len(heads) > 1:
                axes.set_title(f"head {number}", fontsize=10)
        for axes in figure.axes[len(heads):]:
            axes.remove()
    return figure


def cross_attention(model: Transformer, source_ids: Sequence[int], target_ids: Sequence[int],
                    layer: int = -1) -> NDArray[np.floating[Any]]:
    """Which source tokens the decoder attends to when it writes each token of a sentence.

    Args:
        model: in evaluation mode.
        source_ids: (S,), end-of-sentence last.
        target_ids: (T,), without begin-of-sentence; with end-of-sentence last if its row is wanted too.
        layer: of the decoder; -1 is the last.

    Returns:
        The weights of each head, on the host: (H, T, S). Row t belongs to the step that predicts ``target_ids[t]``.

    Raises:
        IndexError: there is no such layer.
    """
    seen: list[Tensor] = []

    def keep(name: str, tensor: Any) -> Any:
        if name == "weights":
            seen.append(tensor)
        return tensor

    source = [list(source_ids)]
    read = [[model.config.bos_id, *target_ids][:-1]]  # at each step the decoder reads the token before
    with no_grad():
        memory = model.encode(source)
        with tapping(keep):
            model.decode(read, memory)
    across = seen[1::2]  # each layer attends to the target first, then to the memory
    if not -len(across) <= layer < len(across):
        raise IndexError(f"cross_attention: the decoder has {len(across)} layers, there is no layer {layer}")
    return np.array(across[layer].numpy()[0])


def _japanese_font() -> list[str]:
    """The font for characters that the usual one lacks, if it is installed; without it they are drawn as boxes."""
    from matplotlib import rc_context
    from matplotlib.font_manager import FontProperties

    try:
        with rc_context():  # the first import registers the font, and makes it the only one
            from matplotlib_fontja import get_font_ttf_path
    except ImportError:
        return []
    return [FontProperties(fname=get_font_ttf_path()).get_name()]


@contextmanager
def _figure(size: tuple[float, float]) -> Iterator[Figure]:
    """A new figure; text made inside the block may be Japanese. Leaves matplotlib's settings as they were."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: install it with  pip install 'minigrad[plot]'") from error
    with matplotlib.rc_context():
        matplotlib.rcParams["font.family"] = [*matplotlib.rcParams["font.family"], *_japanese_font()]
        yield Figure(figsize=size, layout="constrained")
