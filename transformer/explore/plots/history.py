"""The curves of a training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from transformer.explore.plots.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METRICS = {"exact_match": ("exact match (%)", 100.0), "bleu": ("BLEU", 1.0)}


def plot_history(rows: Sequence[Mapping[str, Any]], metric: str = "exact_match") -> Figure:
    """The losses and the validation metric of a training run, over its steps.

    Args:
        rows: those of ``log.csv``.
        metric: the metric in the column "metric", "exact_match" or "bleu".

    Raises:
        ImportError: matplotlib is not installed.
    """
    label, scale = _METRICS[metric]
    columns = {name: [float(row[name]) for row in rows] for name in ("step", "train_loss", "valid_loss", "metric")}
    marker = "o" if len(rows) < 20 else ""
    with new_figure((9, 3.5)) as figure:
        left, right = figure.subplots(1, 2)
        left.plot(columns["step"], columns["train_loss"], color="C0", marker=marker, label="training")
        left.plot(columns["step"], columns["valid_loss"], color="C1", marker=marker, label="validation")
        left.set(title="loss (nats per target token, without dropout)", xlabel="step")
        left.legend()
        right.plot(columns["step"], [scale * value for value in columns["metric"]], color="C2", marker=marker)
        right.set(title=f"validation: {label}", xlabel="step")
        for axes in (left, right):
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
    return figure
