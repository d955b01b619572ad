"""Learning-rate schedules: functions of the step, and the class that applies one to an optimizer.

```python
scheduler = CosineLR(optimizer, warmup_steps=100, total_steps=1000)
for batch in batches:
    ...
    optimizer.step()
    scheduler.step()  # once for each step of the optimizer
```

The scheduler sets the rate for the first update when it is made, and ``step()`` sets it for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import cos, pi
from typing import Any

from minigrad.arguments import number, whole_number
from minigrad.optim.optimizer import Optimizer


class LambdaLR:
    """Sets the learning rate of every parameter group: ``lr = initial_lr · lr_lambda(step)``.

    Args:
        optimizer: whose ``param_groups[i]["lr"]`` is set; the rate it was made with is kept as ``"initial_lr"``.
        lr_lambda: a function of the number of updates that were made, 0 for the first.

    Attributes:
        last_step: how often `step` was called.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float]) -> None:
        self.optimizer, self.last_step, self.lr_lambda = optimizer, 0, lr_lambda
        self._apply()

    def step(self) -> None:
        """Count one update of the optimizer, and set the rate for the next."""
        self.last_step += 1
        self._apply()

    def get_last_lr(self) -> list[float]:
        """The rate of each group now: that of the next update."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def _apply(self) -> None:
        factor = self.optimizer.schedule = self.lr_lambda(self.last_step)
        for group in self.optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
            group["lr"] = float(number(group["initial_lr"] * factor, "the rate", "LambdaLR", 0))

    def state_dict(self) -> dict[str, Any]:
        """The step. The initial rates are in the optimizer's state_dict; save and load both."""
        return {"last_step": self.last_step}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a saved step, and set the rate that belongs to it. ValueError for a step that is none."""
        self.last_step = whole_number(state_dict["last_step"], "last_step", "LambdaLR.load_state_dict", 0)
        self._apply()


def CosineLR(optimizer: Optimizer, warmup_steps: int, total_steps: int, min_ratio: float = 0.0) -> LambdaLR:
    """Linear warm-up to the initial rate, then half a cosine down to `min_ratio` of it.

    For update n = 1, 2, …, w = warmup_steps, T = total_steps, r = min_ratio:
    ``lr/initial_lr = n/w`` up to w, then ``r + (1 − r)·(1 + cos(π·(n − w)/(T − w)))/2`` up to T, then r.
    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017, equation 5, without
    restarts.
    """
    number(total_steps, "total_steps", "CosineLR", number(warmup_steps, "warmup_steps", "CosineLR", 0) + 1)
    number(min_ratio, "min_ratio", "CosineLR", 0)

    def factor(step: int) -> float:
        n = step + 1
        if n < warmup_steps:
            return n / warmup_steps
        done = min((n - warmup_steps) / (total_steps - warmup_steps), 1)
        return min_ratio + (1 - min_ratio) * (1 + cos(pi * done)) / 2

    return LambdaLR(optimizer, factor)
