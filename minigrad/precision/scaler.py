"""Loss scaling: Micikevicius et al., "Mixed precision training", 2018 (arXiv:1710.03740), section 3.2."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from minigrad.arguments import whole_number
from minigrad.device import device_of, is_host, on_device_of, to_device, to_numpy, xp
from minigrad.engine.interpreters import span
from minigrad.engine.primitive import primitive
from minigrad.optim.optimizer import Optimizer
from minigrad.precision.half import widened
from minigrad.tensor import Tensor

LARGEST, SMALLEST = (float(limit) for limit in (np.finfo(np.float32).max, np.finfo(np.float32).tiny))
FACTORS = ("scale", "growth_factor", "backoff_factor", "growth_interval")  # what a state has besides the counter


@primitive
def scale_loss(loss: Any, factor: Any) -> Any:
    """``loss · factor``, in float32 if the loss is float16; its backward may overflow."""
    return widened(loss) * factor


scale_loss.gradient(loss=lambda g, factor: g * factor)
scale_loss.around_pass = lambda: np.errstate(over="ignore", invalid="ignore")


class _Checked(NamedTuple):
    """An optimizer whose gradients are unscaled: whether one of them is not finite, and whether it made its step."""

    found_inf: Any  # a bool, or a 0-d boolean array on a GPU
    stepped: bool


class GradScaler:
    """Keeps gradients in the range of float16: multiplies the loss, divides the gradients, skips what overflowed.

    float16 has nothing between 0 and 6e-8, and gradients of activations are often smaller. By the chain rule a loss
    that is multiplied by s has all gradients multiplied by s; they are divided by s when they have arrived in float32.
    A scale that is too large makes them infinite. So s is found by trial: where a gradient is not finite, the update is
    skipped and s becomes ``s · backoff_factor``; after `growth_interval` updates in a row without that, s becomes
    ``s · growth_factor``, if float32 can hold it.

    ```python
    with minigrad.autocast():
        loss = F.cross_entropy(model(x), target)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)                       # if gradients are clipped, or looked at
    optim.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)                           # in place of optimizer.step()
    scaler.update()
    ```

    With gradients on a GPU, the scale, the counter and whether an update is skipped are 0-d arrays there: nothing waits
    for it but `get_scale` and `state_dict`. Powers of two as factors change no digit of a gradient.

    Args:
        init_scale: s at first.
        growth_factor: above 1.
        backoff_factor: between 0 and 1.
        growth_interval: a number of updates.
        enabled: False makes `scale`, `unscale_` and `update` do nothing, and `step` the optimizer's own.

    Raises:
        ValueError: a scale or factor that is out of range.

    Source: names and behaviour are those of PyTorch's ``torch.amp.GradScaler``.
    """

    def __init__(self, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        self._enabled = bool(enabled)
        self._checked: dict[Optimizer, _Checked] = {}  # since the last update()
        self._set(init_scale, growth_factor, backoff_factor, growth_interval, 0)

    def _set(self, scale: float, growth_factor: float, backoff_factor: float, growth_interval: int, good: int) -> None:
        for name, value in zip(FACTORS, (scale, growth_factor, backoff_factor), strict=False):
            if not isinstance(value, Real) or isinstance(value, bool):
                raise TypeError(f"GradScaler: {name} must be a number, got {value!r}; there is no device to give")
        _require("scale", scale, SMALLEST <= scale <= LARGEST, "positive, and in the range of float32")
        _require("growth_factor", growth_factor, growth_factor > 1 and isfinite(growth_factor), "above 1")
        _require("backoff_factor", backoff_factor, 0 < backoff_factor < 1, "between 0 and 1")
        self._growth_interval = whole_number(growth_interval, "growth_interval", "GradScaler", least=1)
        self._scale: Any = float(scale)  # a number, or a 0-d float32 array on a GPU
        self._good: Any = good  # updates in a row without overflow: an int, or a 0-d array
        self._growth_factor, self._backoff_factor = float(growth_factor), float(backoff_factor)

    def is_enabled(self) -> bool:
        """Whether it scales anything."""
        return self._enabled

    @property
    def factor(self) -> Any:
        """The present scale as it is kept: a number, or a 0-d float32 array on a GPU. 1 if not enabled."""
        return self._scale if self._enabled else 1.0

    @property
    def found_inf(self) -> Any:
        """Whether a gradient unscaled since `update` is not finite: a bool, or a 0-d boolean array on a GPU."""
        return _any([checked.found_inf for checked in self._checked.values()])

    # ------------------------------------------------------------------ one update

    def scale(self, outputs: Any) -> Any:
        """The loss times the scale: `outputs` is a tensor, or a list or tuple of them."""
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(output) for output in outputs])
        if not isinstance(outputs, Tensor):
            raise TypeError(f"GradScaler.scale: expected a Tensor, or a list of them, got {type(outputs).__name__}")
        if not self._enabled:
            return outputs
        return scale_loss(outputs, self._scale if is_host(self._scale) else to_device(self._scale, outputs.device))

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, in place, and look for what is not finite.

        Raises:
            RuntimeError: it was called for this optimizer since the last `update`, or there are no gradients.
            ValueError: gradients in float16, on the host and on a GPU at once.
        """
        if not self._enabled:
            return
        checked = self._checked.get(optimizer)
        if checked is not None:
            reason = "step() was called already" if checked.stepped else "its gradients are unscaled already"
            raise RuntimeError(f"GradScaler.unscale_: {reason} for this optimizer; call update() after each step")
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        self._check_gradients(gradients)
        with span("GradScaler.unscale_"), np.errstate(over="ignore", invalid="ignore"):
            self._checked[optimizer] = _Checked(self._unscale(gradients), False)

    def _check_gradients(self, gradients: list[Tensor]) -> None:
        if not gradients:
            raise RuntimeError("GradScaler: no parameter of the optimizer has a gradient; call "
                               "scaler.scale(loss).backward() first")
        if any(g.dtype == np.float16 for g in gradients):
            raise ValueError("GradScaler: gradients in float16 lose what scaling saved as soon as they are unscaled; "
                             "keep the parameters in float32, and run the forward in minigrad.autocast()")
        devices = sorted({g.device for g in gradients})
        if "cpu" in devices and len(devices) > 1:
            raise ValueError(f"GradScaler: one optimizer has gradients on {', '.join(devices)}, and the host would "
                             "have to wait for the GPU; make an optimizer for the parameters of each kind of device")

    def _unscale(self, gradients: list[Tensor]) -> Any:
        """Whether one of them is not finite. A sum says so for all its terms, and is one launch: infinities and NaN do
        not leave it. (Finite terms that float32 cannot add up are no gradients to go on with, either.)"""
        sums: dict[str, Any] = {}
        inverses: dict[str, Any] = {}
        for g in gradients:
            array, device = g.data, g.device
            g.bump_tick()
            with on_device_of(array):
                if device not in inverses:
                    inverses[device] = 1 / self._scale_on(device)
                array *= inverses[device]
                total = array.sum()
                sums[device] = sums[device] + total if device in sums else total
        found = []
        for total in sums.values():
            with on_device_of(total):
                found.append(~xp(total).isfinite(total))
        return _any([bool(one) if is_host(one) else one for one in found])

    def _scale_on(self, device: str) -> Any:
        if is_host(self._scale):  # a number is at home everywhere
            return self._scale
        if device == "cpu":  # the parameters have left the GPU
            return self.get_scale()
        return to_device(self._scale, device)

    def step(self, optimizer: Optimizer) -> None:
        """``optimizer.step()``, unless a gradient of its parameters is not finite; unscales them if `unscale_` did not.

        Raises:
            RuntimeError: it was called for this optimizer since the last `update`, or there are no gradients.
        """
        if not self._enabled:
            optimizer.step()
            return
        if optimizer in self._checked and self._checked[optimizer].stepped:
            raise RuntimeError("GradScaler.step: it was called for this optimizer already; call update() after each "
                               "step")
        if optimizer not in self._checked:
            self.unscale_(optimizer)
        found = self._checked[optimizer].found_inf
        optimizer.step(skip=found)
        self._checked[optimizer] = _Checked(found, True)

    def update(self) -> None:
        """Choose the next scale by what `unscale_` and `step` found; once, after the steps of all optimizers.

        Raises:
            RuntimeError: nothing was unscaled since the last time.
        """
        if not self._enabled:
            return
        if not self._checked:
            raise RuntimeError("GradScaler.update: no gradients were unscaled since the last update(); call "
                               "step(optimizer) first")
        found = self.found_inf
        if is_host(found):
            self._update_on_host(found)
        else:
            with on_device_of(found):
                self._update_on_gpu(found)
        self._checked.clear()

    # The scale never becomes 0, of which there would be no way back.

    def _update_on_host(self, found: bool) -> None:
        if not is_host(self._scale):  # the parameters have left the GPU
            self._scale, self._good = self.get_scale(), int(to_numpy(self._good))
        if found:
            self._scale, self._good = max(self._scale * self._backoff_factor, SMALLEST), 0
            return
        self._good += 1
        if self._good >= self._growth_interval:
            grown = self._scale * self._growth_factor
            self._scale, self._good = grown if grown <= LARGEST else self._scale, 0

    def _update_on_gpu(self, found: Any) -> None:
        namespace, device = xp(found), device_of(found)
        if is_host(self._scale):
            scale, good = namespace.full((), self._scale, np.float32), namespace.full((), self._good, np.int64)
        else:
            scale, good = to_device(self._scale, device), to_device(self._good, device)
        good = good + 1
        grows = good >= self._growth_interval
        grown = scale * self._growth_factor
        larger = namespace.where(grows & namespace.isfinite(grown), grown, scale)
        smaller = namespace.maximum(scale * self._backoff_factor, SMALLEST)
        self._scale = namespace.where(found, smaller, larger)
        self._good = namespace.where(found | grows, 0, good)

    # ------------------------------------------------------------------ state

    def get_scale(self) -> float:
        """The present scale as a float, 1 if not enabled; for one on a GPU it waits."""
        return float(to_numpy(self._scale)) if self._enabled else 1.0

    def state_dict(self) -> dict[str, Any]:
        """Numbers that fit JSON: the scale, its factors, the updates in a row without overflow; {} if not enabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": int(to_numpy(self._good))}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned; does nothing if not enabled.

        Raises:
            ValueError: it is not the state of an enabled scaler.
        """
        if not self._enabled:
            return
        if not isinstance(state_dict, Mapping) or state_dict.keys() != {*FACTORS, "_growth_tracker"}:
            got = sorted(state_dict) if isinstance(state_dict, Mapping) else type(state_dict).__name__
            raise ValueError(f"GradScaler.load_state_dict: expected the keys {', '.join(FACTORS)} and _growth_tracker, "
                             f"got {got}; a scaler that is not enabled has no state")
        good = whole_number(state_dict["_growth_tracker"], "_growth_tracker", "GradScaler.load_state_dict", least=0)
        scale, growth_factor, backoff_factor, growth_interval = (state_dict[name] for name in FACTORS)
        self._set(scale, growth_factor, backoff_factor, growth_interval, good)
        self._checked.clear()


def _any(flags: list[Any]) -> Any:
    """Whether one of several is True: bools, and 0-d boolean arrays, which come to the GPU of the first of them."""
    on_gpu = [flag for flag in flags if not is_host(flag)]
    if not on_gpu:
        return any(flags)
    with on_device_of(on_gpu[0]):
        found, device = on_gpu[0], device_of(on_gpu[0])
        for flag in on_gpu[1:]:
            found = found | to_device(flag, device)
        return found | True if any(flag is True for flag in flags) else found


def _require(name: str, value: Any, holds: bool, condition: str) -> None:
    if not holds:
        raise ValueError(f"GradScaler: {name} must be {condition}, got {value!r}")
