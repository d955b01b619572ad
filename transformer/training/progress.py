"""The progress of a training run, and a bar that shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Self

from transformer.training.messages import Messages

LINE_EVERY = 30.0  # seconds between the lines of progress in a file


@dataclass
class Progress:
    """The progress of a run, which every checkpoint saves.

    Attributes:
        step: updates made.
        epoch, batch: the epoch of the next batch, and its number in the epoch.
        seconds: training time so far, validations included.
        tokens: real target tokens trained on.
        validated: the step of the last validation.
        improved: whether that validation was the best so far.
        learning_rate: the rate of the last update.
        decay_from, end: with the schedule "wsd": the number of updates before the decay and in the whole run, once they
            are decided; 0 before that.
        loss_sum, loss_tokens: the sum of the training losses since the last validation and the number of their tokens.
            The sum is a raw number on the model's device until `Trainer.read_loss`. Losses are added one by one, so
            that it depends neither on readings nor on a stop and a resume.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    tokens: int = 0
    validated: int = 0
    improved: bool = False
    learning_rate: float = 0.0
    decay_from: int = 0
    end: int = 0
    loss_sum: Any = 0.0
    loss_tokens: int = 0

    @property
    def mean_loss(self) -> float:
        """The training loss per token since the last validation; NaN before the first update."""
        return float(self.loss_sum) / self.loss_tokens if self.loss_tokens else math.nan

    def decay(self, step: int) -> float:
        """The factor of the rate after `step` updates: below 1, and above 0, from the beginning of the decay on."""
        return (self.end - step) / (self.end - self.decay_from + 1) if self.end and step >= self.decay_from else 1.0

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The progress in a checkpoint's entries `values`, which has others, too."""
        return cls(**{field.name: values[field.name] for field in fields(cls)})


def progress_bar(total: int | None, step: int, messages: Messages, shown: bool) -> Any:
    """A bar of updates on a terminal; elsewhere, in a file or a pipe, a line now and then."""
    from tqdm import tqdm

    where: dict[str, Any] = {"file": messages, "dynamic_ncols": True, "mininterval": 0.5}
    if not messages.isatty():
        where = {"file": Lines(messages), "mininterval": LINE_EVERY, "maxinterval": 2 * LINE_EVERY}
    return tqdm(total=total, initial=step, unit="step", disable=not shown, **where)


class Lines:
    """A stream for a bar outside a terminal: it writes each state of the bar as a line, without carriage returns."""

    def __init__(self, stream: Messages) -> None:
        self.stream, self.flush = stream, stream.flush

    def write(self, text: str) -> None:
        """Write a state as a line; drop the blanks that would erase one."""
        if line := text.strip():
            self.stream.write(f"{line}\n")
