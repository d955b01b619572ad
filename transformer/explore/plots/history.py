"""The curves of a training run."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.explore.plots.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METRICS = {"exact_match": ("exact match (%)", 100.0), "bleu": ("BLEU", 1.0)}


def plot_history(log: str | PathLike[str] | Sequence[Mapping[str, Any]], metric: str = "exact_match") -> Figure:
    """The losses and the validation metric of a training run, over its steps.

    Args:
        log: the folder of a run, the path of its ``log.csv``, or its rows.
        metric: the metric in the column "metric", "exact_match" or "bleu".

    Raises:
        ValueError, TypeError: the log is empty, or a line of it damaged; or the metric is unknown.
        FileNotFoundError: there is no log.
        ImportError: matplotlib is not installed.
    """
    if metric not in _METRICS:
        raise ValueError(f"plot_history: metric must be one of {', '.join(_METRICS)}, got {metric!r}")
    rows: Sequence[Mapping[str, Any]]
    if isinstance(log, str | PathLike):
        path = Path(log)
        with open(path / "log.csv" if path.is_dir() else path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = log
    if not rows:
        raise ValueError("plot_history: the log has no rows yet")
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
