"""The progress of a training run and a progress bar for files."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Self

from transformer.training.messages import Messages


@dataclass
class Progress:
    """The progress of a run, which every checkpoint saves.

    Attributes:
        step: updates made.
        epoch, batch: the epoch of the next batch, and its number in the epoch.
        seconds: training time so far, validations included.
        tokens: real target tokens trained on.
        validated: the step of the last validation.
        stale: validations since the best one.
        learning_rate: the rate of the last update.
        decay_from, end: with the schedule "wsd": the number of updates before the decay and in the whole run, once they
            are decided; 0 before that.
        loss_sum, loss_tokens: the sum of the training losses since the last validation and the number of their tokens,
            without skipped updates.
        skipped: the number of updates that the loss scale skipped in a row, up to the last one.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    tokens: int = 0
    validated: int = 0
    stale: int = 0
    learning_rate: float = 0.0
    decay_from: int = 0
    end: int = 0
    loss_sum: float = 0.0
    loss_tokens: int = 0
    skipped: int = 0

    @property
    def mean_loss(self) -> float:
        """The training loss per token since the last validation; NaN before the first update."""
        return self.loss_sum / self.loss_tokens if self.loss_tokens else math.nan

    def decay(self, step: int) -> float:
        """The factor of the rate after `step` updates: below 1, and above 0, from the beginning of the decay on."""
        return (self.end - step) / (self.end - self.decay_from + 1) if self.end and step >= self.decay_from else 1.0

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The progress in a checkpoint's entries `values`; others than the attributes are ignored."""
        return cls(**{field.name: values[field.name] for field in fields(cls) if field.name in values})


class Lines:
    """A stream for a progress bar outside a terminal, in a file or a pipe: it has a line for each state of the bar.

    Args:
        stream: messages for the file or the pipe.
    """

    def __init__(self, stream: Messages) -> None:
        self.stream = stream

    def write(self, text: str) -> None:
        """Write a state of the bar as a line; drop carriage returns, and the blanks that would erase a state."""
        line = text.strip()
        if line:
            self.stream.write(f"{line}\n")

    def flush(self) -> None:
        """Flush the stream."""
        self.stream.flush()
