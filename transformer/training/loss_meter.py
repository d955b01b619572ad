"""The losses of updates, added up on the model's device: nobody waits for them until somebody looks."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device import is_host, on_device_of, to_numpy, xp


class Losses:
    """The sum of the losses since the last validation, and of what it leaves out: updates that were skipped.

    Losses are added one by one, so that the sum does not depend on when somebody looked, or stopped and resumed.

    Attributes:
        total: a raw float64 number or 0-d array, the sum.
        left_out: how many tokens the skipped updates had, whose losses, which need not be finite, are not in it.
        skipped: how many updates in a row were skipped, up to the last.
        scale: the loss scale of the last update; 1 before the first.
    """

    def __init__(self, total: float = 0.0, skipped: int = 0) -> None:
        self.total: Any = total
        self.left_out: Any = 0
        self.skipped: Any = skipped
        self.scale: Any = 1.0

    def add(self, loss: Any, tokens: int, skipped: Any, scale: Any = 1.0) -> None:
        """Add the loss of an update, a raw number or 0-d array, unless `skipped`, a bool or such an array, is true."""
        self.scale = scale
        if skipped is False:
            self.total, self.skipped = self.total + loss, 0
            return
        with on_device_of(loss):
            self.total = self.total + xp(loss).where(skipped, 0.0, loss)
            self.left_out = self.left_out + skipped * tokens
            self.skipped = (self.skipped + 1) * skipped


def read(*values: Any) -> list[float]:
    """Raw numbers and 0-d arrays, of one device, as numbers: a GPU is waited for once."""
    on_gpu = [value for value in values if not is_host(value)]
    if len(on_gpu) < 2:
        return [float(value) for value in values]
    with on_device_of(on_gpu[0]):
        module = xp(on_gpu[0])
        return [float(x) for x in to_numpy(module.stack([module.asarray(value, np.float64) for value in values]))]
