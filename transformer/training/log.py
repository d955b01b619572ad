"""The log of a run: a CSV file with a line for each validation, and its curve as a picture.

Its cells are numbers, so that a line is its cells with commas between them, and whatever else a crash or a bad disk
leaves in the file is a damaged line.
"""

import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transformer.training.messages import note, one_line
from transformer.training.run_folder import RunError, read_file, replace_file

COLUMNS = ("step", "epoch", "objective", "train_loss", "valid_loss", "metric", "learning_rate", "tokens", "seconds")
_ROW = re.compile(r"\d{1,18}(,-?(\d{1,40}(\.\d{1,40})?(e[+-]?\d{1,3})?|nan|inf)){8}\r?\n", re.ASCII)


class Log:
    """``log.csv``: a row for each validation, and for the average of checkpoints, if that was kept.

    train_loss and valid_loss are the same loss, in nats per target token without dropout or smoothing, of a sample of
    the training text and of the validation text; objective is the mean of what the updates since the last row made
    smaller, with dropout and smoothing. The metric is that of `Validation`, the learning rate that of the last update;
    tokens and seconds are totals.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, **values: Any) -> None:
        """Add a line, with the value of each column among these."""
        cells = [f"{values[name]:.6g}" if isinstance(values[name], float) else str(values[name]) for name in COLUMNS]
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            file.write(_line(cells))

    def rows(self) -> list[dict[str, str]]:
        """The lines so far, without those that a crash cut short or garbled."""
        return self.read()[0]

    def read(self) -> tuple[list[dict[str, str]], list[int]]:
        """The lines so far, and the numbers of the damaged lines, counted from 1.

        Raises:
            RunError: there is a folder or a device in place of the file, or it cannot be read.
        """
        try:
            text = read_file(self.path) if self.path.exists() else b""
        except OSError as error:
            raise RunError(f"{self.path}: cannot be read: {one_line(error)}; move it away") from error
        rows, damaged = [], []
        for number, line in enumerate(text.decode("utf-8", "replace").splitlines(keepends=True), start=1):
            if _ROW.fullmatch(line):
                rows.append(dict(zip(COLUMNS, line.strip().split(","), strict=True)))
            elif number > 1 or line != _line(COLUMNS):
                damaged.append(number)
        return rows, damaged

    def cut_after(self, step: int) -> None:
        """Drop the lines of steps after `step`, those of a killed run after its last checkpoint, and damaged lines.

        A log that is missing begins.
        """
        kept = [row.values() for row in self.rows() if int(row["step"]) <= step]
        replace_file(self.path, "".join(map(_line, [COLUMNS, *kept])).encode())

    def draw(self, metric: str) -> None:
        """Draw the curve as ``history.png`` beside the log, unless that is empty.

        No training fails for want of a picture: a failure is a note.
        """
        try:
            if rows := self.rows():
                from transformer.explore.plots import plot_history

                picture = io.BytesIO()
                plot_history(rows, metric=metric).savefig(picture, format="png", dpi=120)
                replace_file(self.path.with_name("history.png"), picture.getvalue())
        except Exception as error:  # noqa: BLE001 - matplotlib may raise anything
            note(f"no history.png: {one_line(error)}")


def _line(cells: Iterable[str]) -> str:
    return ",".join(cells) + "\r\n"
