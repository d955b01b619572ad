"""The loss meter: it sums the losses of updates on the model's device, and synchronises only when it is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device import is_host, on_device_of, to_numpy, xp


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
        self.left_out: Any = 0
        self.skipped: Any = skipped
        self.scale: Any = 1.0

    def add(self, loss: Any, tokens: int, skipped: Any, scale: Any = 1.0) -> None:
        """Add the loss of an update, a raw number or 0-d array, unless `skipped`, a bool or 0-d array, is true."""
        self.scale = scale
        if skipped is False:
            self.total, self.skipped = self.total + loss, 0
            return
        with on_device_of(loss):
            self.total = self.total + xp(loss).where(skipped, 0.0, loss)
            self.left_out = self.left_out + skipped * tokens
            self.skipped = (self.skipped + 1) * skipped


def read(*values: Any) -> list[float]:
    """Raw numbers and 0-d arrays of one device, as numbers; a GPU is synchronised once."""
    on_gpu = [value for value in values if not is_host(value)]
    if len(on_gpu) < 2:
        return [float(value) for value in values]
    with on_device_of(on_gpu[0]):
        module = xp(on_gpu[0])
        return [float(x) for x in to_numpy(module.stack([module.asarray(value, np.float64) for value in values]))]
