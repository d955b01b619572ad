"""Mixed precision on a GPU: `autocast` computes products in float16, `GradScaler` keeps their gradients in its range.

Micikevicius, Narang, Alben, Diamos, Elsen, Garcia, Ginsburg, Houston, Kuchaiev, Venkatesh and Wu, "Mixed precision
training", ICLR 2018 (arXiv:1710.03740). Its three parts:

* a float32 master copy of the weights (section 3.1): parameters stay float32 here, and so do their gradients;
* loss scaling (section 3.2): `GradScaler`;
* arithmetic (section 3.3): products in float16 that add up in float32, reductions in float32. Each operation declares
  what it wants where it is defined, as ``precision=``; a function of several operations by `public_in_precision`.

There is no operation for the casts: `Autocast` casts the arrays that an operation runs on, and the engine casts each
gradient back to the dtype of the input that it is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from minigrad.arguments import public, whole_number
from minigrad.device import DeviceError, asarray_on, device_of, is_array, on_device_of, to_numpy
from minigrad.device.local import Setting
from minigrad.engine.node import TensorBase
from minigrad.engine.primitive import Primitive, casting
from minigrad.engine.watch import span
from minigrad.optim.optimizer import Optimizer
from minigrad.tensor import Tensor

PRECISIONS: dict[str, np.dtype[Any]] = {"float16": np.dtype(np.float16), "float32": np.dtype(np.float32)}


def require_gpu(device: str, where: str) -> None:
    """DeviceError, beginning with `where`, for the host, which has no fast arithmetic in float16."""
    if device == "cpu":
        raise DeviceError(f"{where}: mixed precision needs a GPU; on the cpu compute in float32")


# --------------------------------------------------------------------------- autocast


class Autocast:
    """Casts the inputs of each operation to the precision that it declares.

    None of them is cast if one is float64, whose digits were asked for, or integer, which float16 would end at 65504.
    """

    def values(self, op: Primitive, args: Sequence[Any], values: Sequence[Any]) -> Sequence[Any]:
        """The raw values that `op` runs on; the graph keeps the tensors among `args`."""
        if not may_be_cast(inputs_of(op, args)):
            return values
        dtype = PRECISIONS[op.precision]  # type: ignore[index]
        return [of_dtype(value, dtype) if i in op.positions else value for i, value in enumerate(values)]

    def arguments(self, function: Any, args: Sequence[Any]) -> Sequence[Any]:
        """The arguments of a function of several operations, or of a composition: tensors by a recorded operation."""
        if isinstance(function, Primitive):  # its composition is about to run
            positions, inputs = function.positions, inputs_of(function, args)
        else:
            positions = tuple(i for i, v in enumerate(args) if isinstance(v, TensorBase) and v._data.dtype.kind == "f")
            inputs = [args[i] for i in positions]
        if not may_be_cast(inputs):
            return args
        dtype = PRECISIONS[function.precision]
        return [of_dtype(value, dtype) if i in positions else value for i, value in enumerate(args)]


def inputs_of(op: Primitive, args: Sequence[Any]) -> Sequence[Any]:
    """The inputs among the arguments of an operation, those of ``*xs`` one by one."""
    return args[0] if op.variadic else [args[i] for i in op.positions]


def may_be_cast(inputs: Sequence[Any]) -> bool:
    """Whether each of the inputs is a float16 or float32 array or tensor, a list of floats, or a number.

    DeviceError if they are, and one of them is a tensor in host memory.
    """
    for value in inputs:
        data = value._data if isinstance(value, TensorBase) else value
        if is_array(data) and data.dtype not in PRECISIONS.values():
            return False
        if isinstance(data, (list, tuple)) and np.asarray(data).dtype.kind != "f":
            return False
    for value in inputs:
        if isinstance(value, TensorBase):
            require_gpu(device_of(value._data), "autocast")
    return True


def of_dtype(value: Any, dtype: np.dtype[Any]) -> Any:
    """An array, a tensor, or a tuple of them, as one of `dtype`; anything else as it is."""
    if isinstance(value, tuple):
        return tuple([of_dtype(one, dtype) for one in value])
    if isinstance(value, TensorBase):
        return value if value._data.dtype == dtype else value.astype(dtype)  # type: ignore[attr-defined]
    return asarray_on(device_of(value), value, dtype) if is_array(value) else value


_autocast = Autocast()


def autocasting() -> bool:
    """Whether `autocast` is on here."""
    return casting.get() is not None


@public
def autocast(dtype: Any = "float16", enabled: bool = True) -> Setting[Any]:
    """``with autocast():`` runs products and attention in float16, and softmax, norms and losses in float32, on a GPU.

    Inside, linear maps, matrix products, einsum and attention take float32 inputs in float16; softmax, norms and losses
    take float16 inputs in float32; everything else runs in what it is given. Parameters stay float32, and their
    gradients arrive in float32. A backward, inside or outside, runs in the precisions of what was recorded.
    An operation with an input that is float64 or integer is left as it is. One that would cast a tensor in host memory
    raises a DeviceError.

    It is a context manager and a decorator, local to the thread or task, as `minigrad.fused` is.

    Gradients below 6e-8 vanish in float16: scale the loss by a `minigrad.optim.GradScaler`.

    Args:
        dtype: ``"float16"``, or NumPy's.
        enabled: False switches it off, inside a block that has switched it on.

    Raises:
        ValueError: bfloat16, which NumPy lacks and CuPy cannot multiply in batches, or another dtype.
        TypeError: something that is no dtype.

    Source: Micikevicius et al., "Mixed precision training", 2018 (arXiv:1710.03740), section 3.
    """
    if callable(dtype) and not isinstance(dtype, type):
        raise TypeError("autocast: it is called to decorate a function: @autocast()")
    try:
        name = str(dtype) if dtype is None or isinstance(dtype, str) else np.dtype(dtype).name
    except TypeError:
        raise TypeError(f"autocast: the dtype must be 'float16', got {dtype!r}") from None
    if name == "bfloat16":
        raise ValueError("autocast: NumPy has no bfloat16, and CuPy's batched products do not take it; use 'float16' "
                         "with minigrad.optim.GradScaler")
    if name != "float16":
        raise ValueError(f"autocast: the dtype must be 'float16', got {name!r}")
    return Setting(casting, lambda now: _autocast if enabled else None)


# --------------------------------------------------------------------------- loss scaling

LARGEST, SMALLEST = (float(limit) for limit in (np.finfo(np.float32).max, np.finfo(np.float32).tiny))
FACTORS = ("scale", "growth_factor", "backoff_factor", "growth_interval")  # what a state has besides the counter


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

    The scale is a number on the host. Each `unscale_` waits once for the GPU, which says whether the gradients are
    finite. Powers of two as factors change no digit of a gradient.

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
        self._overflowed: dict[Optimizer, bool] = {}  # those unscaled since the last update()
        self._stepped: set[Optimizer] = set()
        self._set(init_scale, growth_factor, backoff_factor, growth_interval, 0)

    def _set(self, scale: float, growth_factor: float, backoff_factor: float, growth_interval: int, good: int) -> None:
        for name, value in zip(FACTORS, (scale, growth_factor, backoff_factor), strict=False):
            if not isinstance(value, Real) or isinstance(value, bool):
                raise TypeError(f"GradScaler: {name} must be a number, got {value!r}")
        _require("scale", scale, SMALLEST <= scale <= LARGEST, "positive, and in the range of float32")
        _require("growth_factor", growth_factor, growth_factor > 1 and isfinite(growth_factor), "above 1")
        _require("backoff_factor", backoff_factor, 0 < backoff_factor < 1, "between 0 and 1")
        self._growth_interval = whole_number(growth_interval, "growth_interval", "GradScaler", least=1)
        self._scale, self._good = float(scale), good  # `_good`: updates in a row without overflow
        self._growth_factor, self._backoff_factor = float(growth_factor), float(backoff_factor)

    def is_enabled(self) -> bool:
        """Whether it scales anything."""
        return self._enabled

    @property
    def found_inf(self) -> bool:
        """Whether a gradient unscaled since `update` is not finite."""
        return any(self._overflowed.values())

    # ------------------------------------------------------------------ one update

    def scale(self, outputs: Any) -> Any:
        """The loss times the scale, in float32: `outputs` is a tensor, or a list or tuple of them.

        Raises:
            DeviceError: a tensor in host memory.
        """
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(output) for output in outputs])
        if not isinstance(outputs, Tensor):
            raise TypeError(f"GradScaler.scale: expected a Tensor, or a list of them, got {type(outputs).__name__}")
        if not self._enabled:
            return outputs
        require_gpu(outputs.device, "GradScaler.scale")
        return (outputs.astype(np.float32) if outputs.dtype == np.float16 else outputs) * self._scale

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, in place, and look for what is not finite.

        Raises:
            RuntimeError: it was called for this optimizer since the last `update`, or there are no gradients.
            ValueError: gradients in float16.
            DeviceError: gradients in host memory.
        """
        if not self._enabled:
            return
        if optimizer in self._overflowed:
            stepped = optimizer in self._stepped
            reason = "step() was called already" if stepped else "its gradients are unscaled already"
            raise RuntimeError(f"GradScaler.unscale_: {reason} for this optimizer; call update() after each step")
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if not gradients:
            raise RuntimeError("GradScaler: no parameter of the optimizer has a gradient; call "
                               "scaler.scale(loss).backward() first")
        for g in gradients:
            require_gpu(g.device, "GradScaler.unscale_")
            if g.dtype == np.float16:
                raise ValueError("GradScaler: gradients in float16 lose what scaling saved as soon as they are "
                                 "unscaled; keep the parameters in float32, and run the forward in minigrad.autocast()")
        with span("GradScaler.unscale_"):
            self._overflowed[optimizer] = self._unscale(gradients)

    def _unscale(self, gradients: list[Tensor]) -> bool:
        """Whether one of them is not finite. A sum says so for all its terms, and is one launch: infinities and NaN do
        not leave it. (Finite terms that float32 cannot add up are no gradients to go on with, either.)"""
        totals: dict[str, Any] = {}
        for g in gradients:
            array = g.data
            g.bump_tick()
            with on_device_of(array):
                array *= 1 / self._scale
                totals[g.device] = totals.get(g.device, 0) + array.sum()
        return not all(isfinite(to_numpy(total)) for total in totals.values())

    def step(self, optimizer: Optimizer) -> None:
        """``optimizer.step()``, unless a gradient of its parameters is not finite; unscales them if `unscale_` did not.

        Raises:
            RuntimeError: it was called for this optimizer since the last `update`, or there are no gradients.
        """
        if not self._enabled:
            optimizer.step()
            return
        if optimizer in self._stepped:
            raise RuntimeError("GradScaler.step: it was called for this optimizer already; call update() after each "
                               "step")
        if optimizer not in self._overflowed:
            self.unscale_(optimizer)
        if not self._overflowed[optimizer]:
            optimizer.step()
        self._stepped.add(optimizer)

    def update(self) -> None:
        """Choose the next scale by what `unscale_` and `step` found; once, after the steps of all optimizers.

        Raises:
            RuntimeError: nothing was unscaled since the last time.
        """
        if not self._enabled:
            return
        if not self._overflowed:
            raise RuntimeError("GradScaler.update: no gradients were unscaled since the last update(); call "
                               "step(optimizer) first")
        self._good = 0 if self.found_inf else self._good + 1
        if self.found_inf:
            self._scale = max(self._scale * self._backoff_factor, SMALLEST)  # from 0 there would be no way back
        elif self._good >= self._growth_interval:
            grown = self._scale * self._growth_factor
            self._scale, self._good = grown if grown <= LARGEST else self._scale, 0
        self._overflowed.clear()
        self._stepped.clear()

    # ------------------------------------------------------------------ state

    def get_scale(self) -> float:
        """The present scale; 1 if not enabled."""
        return self._scale if self._enabled else 1.0

    def state_dict(self) -> dict[str, Any]:
        """Numbers that fit JSON: the scale, its factors, the updates in a row without overflow; {} if not enabled."""
        if not self._enabled:
            return {}
        return {"scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._good}

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
        self._overflowed.clear()
        self._stepped.clear()


def _require(name: str, value: Any, holds: bool, condition: str) -> None:
    if not holds:
        raise ValueError(f"GradScaler: {name} must be {condition}, got {value!r}")
