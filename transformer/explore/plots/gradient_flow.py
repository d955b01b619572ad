"""The gradient norm of each layer: the first plot to make when a deep model does not learn."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from minigrad import nn

from transformer.explore.plots.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, which the colour-blind can tell apart. Each projection of an attention has a colour; the
# lines of self-attention are solid, those of cross-attention dashed.
_COLOURS = {"query": "#0072B2", "key": "#D55E00", "value": "#009E73", "output": "#CC79A7"}
_STYLES: dict[str, dict[str, Any]] = {  # by kind, in the order of the legend
    **{f"self-attention {part}": {"color": colour, "marker": "o"} for part, colour in _COLOURS.items()},
    **{f"cross-attention {part}": {"color": colour, "marker": "s", "linestyle": "--"}
       for part, colour in _COLOURS.items()},
    "feed-forward": {"color": "#E69F00", "marker": "^"},
    "norms": {"color": "#56B4E9", "marker": "d"},
    "embeddings": {"color": "black", "marker": "P"},
    "projection": {"color": "black", "marker": "X"},
    "other": {"color": "grey", "marker": "."},
}


def gradient_norms(model: nn.Module) -> dict[str, dict[str, float]]:
    """The norm of the gradient that a backward left in each layer, by kind of parameter.

    Args:
        model: a Transformer, or a part of it.

    Returns:
        ``{"encoder.layers.0": {"self-attention query": 0.031, …, "feed-forward": 0.4, "norms": 0.02}, …}``, in the
        order of the model. The norm is the Euclidean norm of a kind's weights and biases together: √Σ (∂L/∂θ)², in
        float64. Parameters without a gradient are left out; an output layer tied to the embeddings counts as those.

    Raises:
        TypeError: not a module.
        ValueError: no parameter has a gradient, or one is not finite.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"a model expected, got {type(model).__name__}")
    norms: dict[str, dict[str, float]] = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            continue
        norm = float(np.linalg.norm(parameter.grad.numpy().astype(np.float64)))
        if not math.isfinite(norm):
            raise ValueError(f"the gradient of {name} is not finite; minigrad.detect_anomaly() shows where that began")
        kinds = norms.setdefault(_place(name), {})
        kind = _kind(name)
        kinds[kind] = math.hypot(kinds.get(kind, 0.0), norm)
    if not norms:
        raise ValueError("no parameter has a gradient: call backward() on a loss of the model first, and look before "
                         "zero_grad()")
    return norms


def plot_gradient_flow(model: nn.Module) -> Figure:
    """The norm of the gradient in each layer, on a logarithmic scale: a line for each kind of parameter.

    A norm of exactly 0, which has no logarithm, is an open marker on the line at the bottom.

    Args:
        model: a Transformer, after ``loss.backward()``.

    Raises:
        TypeError, ValueError: as for `gradient_norms`.
        ImportError: matplotlib is not installed.
    """
    norms = gradient_norms(model)
    places = list(norms)
    every = [norm for kinds in norms.values() for norm in kinds.values()]
    bottom = 10.0 ** (math.floor(math.log10(min(filter(None, every), default=1.0))) - 1)
    with new_figure((3.5 + 0.55 * len(places), 4.2)) as figure:
        axes = figure.subplots()
        axes.set_yscale("log")
        for kind in _STYLES:
            points = [(number, norms[place][kind]) for number, place in enumerate(places) if kind in norms[place]]
            if points:
                _draw(axes, kind, points, [_stack(place) for place in places], bottom)
        if 0 in every:
            axes.axhline(bottom, color="grey", linewidth=0.8, linestyle=":")
            axes.annotate("exactly 0", (1, bottom), xycoords=("axes fraction", "data"), xytext=(-4, 3),
                          textcoords="offset points", ha="right", color="grey", fontsize=8)
        axes.set_xticks(range(len(places)), [_title(place) for place in places], rotation=45, ha="right")
        axes.set(title="gradient flow", ylabel="norm of the gradient")
        axes.grid(alpha=0.3)
        figure.legend(loc="outside right upper", fontsize=8, handlelength=4)
    return figure


def _draw(axes: Any, kind: str, points: list[tuple[int, float]], stacks: list[str], bottom: float) -> None:
    """Draw the points (place, norm) of one kind, joined by a line in each stack; points of norm 0 are at the bottom."""
    label: str | None = kind
    for stack in dict.fromkeys(stacks):
        here = [(number, norm) for number, norm in points if stacks[number] == stack]
        if here:
            axes.plot([number for number, _ in here], [norm or math.nan for _, norm in here], **_STYLES[kind],
                      label=label)
            label = None  # once in the legend
    nothing = [number for number, norm in points if norm == 0]
    if nothing:
        axes.plot(nothing, [bottom] * len(nothing), **(_STYLES[kind] | {"linestyle": ""}), fillstyle="none")


def _place(name: str) -> str:
    """The layer of a parameter, or its module outside of layers: "encoder.layers.0", "encoder.norm", "projection"."""
    parts = name.split(".")
    for number, part in enumerate(parts, start=1):
        if part.isdecimal() or part in ("embedding", "norm", "projection"):
            return ".".join(parts[:number])
    return ".".join(parts[:-1]) or name


def _kind(name: str) -> str:
    parts = name.split(".")
    for part, kind in (("norm", "norms"), ("feed_forward", "feed-forward"), ("embedding", "embeddings"),
                       ("projection", "projection")):
        if part in parts:
            return kind
    for attention, part in pairwise(parts):
        if attention.endswith("attention") and part in _COLOURS:
            return f"{'cross' if attention.startswith('cross') else 'self'}-attention {part}"
    return "other"


def _stack(place: str) -> str:
    """The group of places that a line connects: the layers of one stack, or a single module outside of layers."""
    return place.rstrip("0123456789")


def _title(place: str) -> str:
    return place.replace("layers.", "").replace(".", " ")
