"""The loss meter: it sums the losses of updates on the model's device, and synchronises only when it is read."""

from __future__ import annotations

from typing import Any


class LossMeter:
    """The sum of the losses since the last validation, without skipped updates, whose losses need not be finite.

    Losses are added one by one, so that the sum does not depend on readings, or on a stop and a resume.

    Attributes:
        total: a raw float64 number or 0-d array, the sum.
        left_out: the number of tokens in skipped updates.
        skipped: the number of updates skipped in a row, up to the last one.
        scale: the loss scale of the last update; 1 before the first.
    """

    def __init__(self, total: float = 0.0, skipped: int = 0) -> None:
        self.total: Any = total
        self.left_out = 0
        self.skipped = skipped
        self.scale = 1.0

    def add(self, loss: Any, tokens: int, skipped: bool, scale: float = 1.0) -> None:
        """Add the loss of an update, a raw number or 0-d array, unless it was `skipped`."""
        self.scale = scale
        if skipped:
            self.left_out, self.skipped = self.left_out + tokens, self.skipped + 1
        else:
            self.total, self.skipped = self.total + loss, 0
