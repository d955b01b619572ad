"""Where a training run is, and lines in a file that say so."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Self, TextIO


@dataclass
class Progress:
    """Where a run is. All of it is saved in every checkpoint.

    Attributes:
        step: updates made.
        epoch, batch: the batch to come next: its epoch, and its number in it.
        seconds: training time so far, validations included.
        tokens: real target tokens trained on.
        validated: the step of the last validation.
        stale: validations since the best one.
        loss_sum, loss_tokens: of the training losses since the last validation; of updates that a loss scale skipped
            neither.
        skipped: how many updates in a row it skipped, up to the last.

    Raises:
        TypeError: a value that is no number of at least 0, or not whole where it counts something.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    tokens: int = 0
    validated: int = 0
    stale: int = 0
    loss_sum: float = 0.0
    loss_tokens: int = 0
    skipped: int = 0

    @property
    def mean_loss(self) -> float:
        """Of the updates since the last validation, per token; NaN if there was none."""
        return self.loss_sum / self.loss_tokens if self.loss_tokens else math.nan

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """From those of the attributes that `values`, a checkpoint's progress, has; it has others, too."""
        return cls(**{field.name: values[field.name] for field in fields(cls) if field.name in values})

    def __post_init__(self) -> None:
        for field in fields(self):
            value, kind = getattr(self, field.name), (int if field.type == "int" else int | float)
            if not isinstance(value, kind) or isinstance(value, bool) or not 0 <= value < math.inf:
                raise TypeError(f"the progress has {field.name} {value!r}, which is no number of its kind")


class Lines:
    """What the bar writes into where it is no terminal, a file or a pipe: a line for each of its states.

    Args:
        stream: the file or the pipe.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> None:
        """One state, which begins with a carriage return, or only blanks to wipe it out, or the newline after it."""
        line = text.strip()
        if line:
            self.stream.write(f"{line}\n")

    def flush(self) -> None:
        """Flush the stream."""
        self.stream.flush()
