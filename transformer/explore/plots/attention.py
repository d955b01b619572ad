"""Plots of attention weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minigrad import Tensor, no_grad, tapping

from transformer.explore.plots.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transformer.model import Transformer


def plot_attention(weights: Tensor | NDArray[np.floating[Any]], source_tokens: Sequence[str] | None = None,
                   target_tokens: Sequence[str] | None = None) -> Figure:
    """Attention weights as grey squares, one panel for each head, counted from 0: black is 1.

    Args:
        weights: (H, T, S), or (T, S) for a single panel: an array or a Tensor. A trace has those of a whole batch; take
            one item: ``t["decoder.layers.0.cross_attention"].weights[0]``.
        source_tokens: labels of the S columns, the keys; None: their numbers.
        target_tokens: labels of the T rows, the queries; None: their numbers.

    Raises:
        ValueError: the labels do not fit the weights.
        ImportError: matplotlib is not installed.
    """
    weights = weights.detach().numpy() if isinstance(weights, Tensor) else np.asarray(weights)
    if weights.ndim >= 2:
        target_tokens = _numbers(weights.shape[-2]) if target_tokens is None else target_tokens
        source_tokens = _numbers(weights.shape[-1]) if source_tokens is None else source_tokens
    expected = (len(target_tokens or ()), len(source_tokens or ()))
    if weights.ndim not in (2, 3) or weights.shape[-2:] != expected:
        of_a_batch = " (of a batch, take one item: weights[0])" if weights.ndim == 4 else ""
        raise ValueError(f"plot_attention: there are labels for (T, S) = {expected}; weights of that shape or "
                         f"(H, T, S) expected, got {weights.shape}{of_a_batch}")
    heads = weights if weights.ndim == 3 else weights[None]
    # Signs make blanks visible; below, parse_math=False keeps a dollar sign from beginning a formula.
    across, down = ([token.replace(" ", "␣") for token in tokens or ()] for tokens in (source_tokens, target_tokens))
    columns = math.ceil(math.sqrt(len(heads)))
    rows = math.ceil(len(heads) / columns)
    width, height = 0.8 + 0.2 * expected[1], 0.9 + 0.2 * expected[0]  # of a panel, in inches
    with new_figure((columns * max(2.0, width), rows * max(2.0, height))) as figure:
        panels = figure.subplots(rows, columns, squeeze=False).flat
        for number, (axes, head) in enumerate(zip(panels, heads, strict=False)):
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


def _numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def cross_attention(model: Transformer, source_ids: Sequence[int], target_ids: Sequence[int],
                    layer: int = -1) -> NDArray[np.floating[Any]]:
    """The weights with which the decoder attends to the source tokens when it writes each token of a sentence.

    Args:
        model: a model in evaluation mode.
        source_ids: (S,), end-of-sentence last.
        target_ids: (T,), without begin-of-sentence; ending in end-of-sentence to include its row.
        layer: the decoder layer; -1 is the last.

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
    read = [[model.config.bos_id, *target_ids][:-1]]  # teacher forcing
    with no_grad():
        memory = model.encode(source)
        with tapping(keep):
            model.decode(read, memory)
    across = seen[1::2]  # each layer attends to the target first, then to the memory
    if not -len(across) <= layer < len(across):
        raise IndexError(f"cross_attention: the decoder has {len(across)} layers, there is no layer {layer}")
    return np.array(across[layer].numpy()[0])
