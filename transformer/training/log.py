"""The log of a run: a CSV file with a line for each validation, and its curve as a picture."""

from __future__ import annotations

import csv
import importlib.util
import os
from pathlib import Path
from typing import Any

COLUMNS = ("step", "epoch", "train_loss", "valid_loss", "metric", "learning_rate", "tokens", "seconds")


class Log:
    """``log.csv``: losses in nats per target token, the metric as in `Validation`, tokens and seconds as totals."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def start(self) -> None:
        """Begin an empty log."""
        self._write([])

    def add(self, **values: Any) -> None:
        """Add a line, with a value for each column."""
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([_text(values[name]) for name in COLUMNS])

    def rows(self) -> list[dict[str, str]]:
        """The lines so far, without those that a crash cut short or garbled."""
        if not self.path.is_file():
            return []
        with open(self.path, newline="", encoding="utf-8", errors="replace") as file:
            return [row for row in csv.DictReader(file) if tuple(row) == COLUMNS and _is_whole(row)]

    def cut_after(self, step: int) -> None:
        """Drop the lines of steps after `step`, which a killed run wrote after its last checkpoint."""
        self._write([row for row in self.rows() if int(row["step"]) <= step])

    def _write(self, rows: list[dict[str, str]]) -> None:
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        with open(temporary, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
        os.replace(temporary, self.path)

    def draw(self, metric: str) -> Path | None:
        """Draw the curve as ``history.png`` beside the log; None if the log is empty or matplotlib is missing."""
        if not self.rows() or not can_draw():
            return None
        from transformer.explore.plots import plot_history

        path = self.path.with_name("history.png")
        plot_history(self.path, metric=metric).savefig(path, dpi=120)
        return path


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def _is_whole(row: dict[str, str]) -> bool:
    return bool(row["seconds"]) and row["step"].isdecimal()


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
