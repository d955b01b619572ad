"""The progress of a training run, which every checkpoint saves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

METRIC_NAMES = {"exact_match": "exact match", "bleu": "BLEU"}
NOISE = {"exact_match": 0.0, "bleu": 5.0}  # of so little BLEU, a few chance words decide


@dataclass(frozen=True)
class Validation:
    """The loss per target token, without smoothing, and the metric: exact match (a fraction) or BLEU (0 to 100)."""

    loss: float
    metric: float

    def better_than(self, other: Validation | None, metric: str = "exact_match") -> bool:
        """Whether the metric is higher, or the same with a lower loss; below `NOISE` all metrics are the same."""
        return other is None or self._rank(metric) > other._rank(metric)

    def _rank(self, metric: str) -> tuple[float, float]:
        return max(self.metric, NOISE[metric]), -self.loss

    def describe(self, metric: str) -> str:
        """The loss and the metric, in one line of text."""
        value = f"{100 * self.metric:.2f} %" if metric == "exact_match" else f"{self.metric:.2f}"
        return f"validation loss {self.loss:.4f}, {METRIC_NAMES[metric]} {value}"


@dataclass
class Progress:
    """The progress of a run.

    Attributes:
        step: updates made.
        epoch, batch: the epoch of the next batch, and its number in the epoch.
        seconds: training time so far, validations included.
        tokens: real target tokens trained on.
        validated: the step of the last validation.
        improved: whether that validation was the best so far.
        best: the best validation, of the checkpoint that "best" names; None before the first.
        learning_rate: the rate of the last update.
        decay_from, end: with the schedule "wsd": the number of updates before the decay and in the whole run, once they
            are decided; 0 before that.
        loss_sum, loss_tokens: the sum of the training losses since the last validation and the number of their tokens.
            The sum is a raw number on the model's device until `Trainer.read_loss`. Losses are added one by one, so
            that it depends neither on readings nor on a stop and a resume.
        data_checksum: a checksum of the token ids of all pairs.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    tokens: int = 0
    validated: int = 0
    improved: bool = False
    best: Validation | None = None
    learning_rate: float = 0.0
    decay_from: int = 0
    end: int = 0
    loss_sum: Any = 0.0
    loss_tokens: int = 0
    data_checksum: int = 0

    @property
    def mean_loss(self) -> float:
        """The training loss per token since the last validation; NaN before the first update."""
        return float(self.loss_sum) / self.loss_tokens if self.loss_tokens else math.nan

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`; KeyError or TypeError for malformed values."""
        best = values["best"]
        return cls(**values | {"best": best and Validation(**best)})
