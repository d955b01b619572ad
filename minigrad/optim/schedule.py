"""Learning-rate schedules: functions of the step, and the `Scheduler` that applies one to an optimizer.

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

from minigrad.arguments import number
from minigrad.optim.optimizer import Optimizer

Rate = Callable[[int, float], float]


class Scheduler:
    """Sets the learning rate of every parameter group by a function of the step.

    Args:
        optimizer: whose ``param_groups[i]["lr"]`` is set, of groups that join later, too.
        rate: ``rate(step, initial_lr) -> lr``: step is how many updates were made, 0 for the first;
            initial_lr is the rate that the group was made with (kept as ``"initial_lr"`` in the group).
        name: what it is called in messages and in the repr.

    Attributes:
        last_step: how often `step` was called.
    """

    def __init__(self, optimizer: Optimizer, rate: Rate, name: str = "Scheduler") -> None:
        self.optimizer, self.last_step = optimizer, 0
        self._rate, self._name = rate, name
        self._apply()

    def step(self) -> None:
        """Count one update of the optimizer, and set the rate for the next."""
        self.last_step += 1
        self._apply()

    def get_last_lr(self) -> list[float]:
        """The rate of each group now: that of the next update."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def _apply(self) -> None:
        rate, step, name = self._rate, self.last_step, self._name  # not the scheduler: it refers to the optimizer

        def schedule(group: dict[str, Any]) -> None:
            initial_lr = group.setdefault("initial_lr", group["lr"])
            group["lr"] = number(rate(step, initial_lr), "the rate", name)

        for group in self.optimizer.param_groups:
            schedule(group)
        self.optimizer.schedule = schedule

    def state_dict(self) -> dict[str, Any]:
        """The step. The initial rates are in the optimizer's state_dict; save and load both."""
        return {"last_step": self.last_step}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a saved step, and set the rate that belongs to it. ValueError if it is no such state."""
        last_step = state_dict.get("last_step") if isinstance(state_dict, Mapping) else None
        if not isinstance(last_step, int) or last_step < 0:
            raise ValueError(
                f"{self._name}.load_state_dict: expected {{'last_step': number of steps}}, got {state_dict!r}"
            )
        self.last_step = last_step
        self._apply()

    def __repr__(self) -> str:
        rates = ", ".join(f"{lr:.4g}" for lr in self.get_last_lr())
        return f"{self._name}(last_step={self.last_step}, lr={rates})"


def LambdaLR(optimizer: Optimizer, lr_lambda: Callable[[int], float]) -> Scheduler:
    """``lr = initial_lr · lr_lambda(step)``, step counted from 0."""
    return Scheduler(optimizer, lambda step, initial_lr: initial_lr * lr_lambda(step), "LambdaLR")


def CosineLR(optimizer: Optimizer, warmup_steps: int, total_steps: int, min_ratio: float = 0.0) -> Scheduler:
    """Linear warm-up to the initial rate, then half a cosine down to `min_ratio` of it.

    For update n = 1, 2, …, w = warmup_steps, T = total_steps, r = min_ratio:
    ``lr/initial_lr = n/w`` up to w, then ``r + (1 − r)·(1 + cos(π·(n − w)/(T − w)))/2`` up to T, then r.
    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017, equation 5, without
    restarts.
    """
    return _after_warmup("CosineLR", optimizer, warmup_steps, total_steps, min_ratio,
                         lambda done, least: least + (1 - least) * (1 + cos(pi * done)) / 2)


def LinearLR(optimizer: Optimizer, warmup_steps: int, total_steps: int, min_ratio: float = 0.0) -> Scheduler:
    """Linear warm-up to the initial rate, then a straight line down to `min_ratio` of it.

    For update n = 1, 2, …, w = warmup_steps, T = total_steps, r = min_ratio:
    ``lr/initial_lr = n/w`` up to w, then ``1 − (1 − r)·(n − w)/(T − w)`` up to T, then r.
    """
    return _after_warmup("LinearLR", optimizer, warmup_steps, total_steps, min_ratio,
                         lambda done, least: 1 - (1 - least) * done)


def _after_warmup(name: str, optimizer: Optimizer, warmup_steps: int, total_steps: int, min_ratio: float,
                  decay: Callable[[float, float], float]) -> Scheduler:
    """A line up to the initial rate, then `decay` of how much of the rest is done, from 0 to 1, and of `min_ratio`."""
    warmup = number(warmup_steps, "warmup_steps", name, 0)
    least = number(min_ratio, "min_ratio", name, 0)
    total = number(total_steps, "total_steps", name, warmup + 1)

    def rate(step: int, initial_lr: float) -> float:
        n = step + 1
        rise = min(n / warmup, 1.0) if warmup else 1.0
        return initial_lr * rise * decay(min(max((n - warmup) / (total - warmup), 0.0), 1.0), least)

    return Scheduler(optimizer, rate, name)
