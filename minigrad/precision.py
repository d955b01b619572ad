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
from itertools import compress
from math import isfinite
from typing import Any

import numpy as np

from minigrad.arguments import number, whole_number
from minigrad.device import DeviceError, asarray_on, device_of, is_array, on_device_of, to_numpy
from minigrad.device.local import Setting
from minigrad.engine.node import TensorBase, in_dtype
from minigrad.engine.primitive import Primitive
from minigrad.engine.watch import put_around, span
from minigrad.optim.optimizer import Optimizer
from minigrad.tensor import Tensor

PRECISIONS = np.dtype(np.float16), np.dtype(np.float32)


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
        if not may_be_cast([args[i] for i in op.positions]):
            return values
        dtype = np.dtype(op.precision)
        return [of_dtype(value, dtype) if i in op.positions else value for i, value in enumerate(values)]

    def arguments(self, precision: str, args: Sequence[Any], keywords: dict[str, Any]
                  ) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments of a function of several operations that wants a precision: tensors by a recorded operation."""
        given = [*args, *keywords.values()]
        floating = [isinstance(value, TensorBase) and value._data.dtype.kind == "f" for value in given]
        if may_be_cast([*compress(given, floating)]):
            given = [of_dtype(value, np.dtype(precision)) if casts else value
                     for value, casts in zip(given, floating, strict=True)]
        return given[:len(args)], dict(zip(keywords, given[len(args):], strict=True))


def may_be_cast(inputs: Sequence[Any]) -> bool:
    """Whether each of the inputs is a float16 or float32 array or tensor, a list of floats, or a number.

    DeviceError if they are, and one of them is a tensor in host memory.
    """
    for value in inputs:
        data = value._data if isinstance(value, TensorBase) else value
        if is_array(data) and data.dtype not in PRECISIONS:
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
        return in_dtype(value, dtype)
    return asarray_on(device_of(value), value, dtype) if is_array(value) else value


_autocast = Autocast()


def autocast() -> Setting[Any]:
    """``with autocast():`` runs products and attention in float16, and softmax, norms and losses in float32, on a GPU.

    Inside, linear maps, matrix products and attention take float32 inputs in float16; softmax, norms and losses
    take float16 inputs in float32; everything else runs in what it is given. Parameters stay float32, and their
    gradients arrive in float32. A backward, inside or outside, runs in the precisions of what was recorded.
    An operation with an input that is float64 or integer is left as it is. One that would cast a tensor in host memory
    raises a DeviceError.

    It is a context manager and a decorator, local to the thread or task, as `minigrad.fused` is.

    Gradients below 6e-8 vanish in float16: scale the loss by a `minigrad.GradScaler`. There is no bfloat16: NumPy
    lacks it, and CuPy cannot multiply it in batches.

    Source: Micikevicius et al., "Mixed precision training", 2018 (arXiv:1710.03740), section 3.
    """
    return put_around(cast=_autocast)


# --------------------------------------------------------------------------- loss scaling

LARGEST, SMALLEST = (float(limit) for limit in (np.finfo(np.float32).max, np.finfo(np.float32).tiny))
FACTOR, INTERVAL = 2.0, 2000  # by which the scale changes, and how many updates without overflow make it grow


class GradScaler:
    """Keeps gradients in the range of float16: multiplies the loss, divides the gradients, skips what overflowed.

    float16 has nothing between 0 and 6e-8, and gradients of activations are often smaller. By the chain rule a loss
    that is multiplied by s has all gradients multiplied by s; they are divided by s when they have arrived in float32.
    A scale that is too large makes them infinite. So s is found by trial: where a gradient is not finite, the update is
    skipped and s is halved; after 2,000 updates in a row without that, s is doubled, if float32 can hold it.

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
    finite. Powers of two change no digit of a gradient.

    Args:
        init_scale: s at first.

    Attributes:
        found_inf: whether a gradient unscaled since `update` is not finite.

    Raises:
        ValueError: a scale that is out of range.

    Source: names and behaviour are those of PyTorch's ``torch.amp.GradScaler``, for one optimizer.
    """

    def __init__(self, init_scale: float = 65536.0) -> None:
        self._set(init_scale, 0)

    def _set(self, scale: float, good: int) -> None:
        self._scale, self._good = (float(number(scale, "the scale", "GradScaler", SMALLEST, LARGEST)),
                                   whole_number(good, "_growth_tracker", "GradScaler", 0))  # updates without overflow
        self.found_inf, self._stage = False, 0  # 1 after unscale_, 2 after step

    # ------------------------------------------------------------------ one update

    def scale(self, output: Tensor) -> Tensor:
        """The loss times the scale, in float32. DeviceError for a tensor in host memory."""
        require_gpu(output.device, "GradScaler.scale")
        return (output.astype(np.float32) if output.dtype == np.float16 else output) * self._scale

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, in place, and look for what is not finite.

        A sum is not finite if a term is not, and takes one launch. (Finite terms that float32 cannot add up are no
        gradients to go on with, either.)

        Raises:
            RuntimeError: it was called since the last `update`, or there are no gradients.
            ValueError: gradients in float16.
            DeviceError: gradients in host memory.
        """
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if self._stage or not gradients:
            raise RuntimeError("GradScaler.unscale_: there are no gradients, or they are unscaled already; call "
                               "scaler.scale(loss).backward() before, and update() after each step()")
        for g in gradients:
            require_gpu(g.device, "GradScaler.unscale_")
            if g.dtype == np.float16:
                raise ValueError("GradScaler: gradients in float16 lose what scaling saved as soon as they are "
                                 "unscaled; keep the parameters in float32, and run the forward in minigrad.autocast()")
        with span("GradScaler.unscale_"), on_device_of(gradients[0].data):
            total = 0
            for g in gradients:
                g.bump_tick()
                array = g.data
                array *= 1 / self._scale
                total = total + array.sum()
            self.found_inf, self._stage = not isfinite(to_numpy(total)), 1

    def step(self, optimizer: Optimizer) -> None:
        """``optimizer.step()``, unless a gradient of its parameters is not finite; unscales them if `unscale_` did not.

        Raises:
            RuntimeError: it was called since the last `update`, or there are no gradients.
        """
        if self._stage == 2:
            raise RuntimeError("GradScaler.step: it was called already; call update() after each step()")
        if self._stage == 0:
            self.unscale_(optimizer)
        if not self.found_inf:
            optimizer.step()
        self._stage = 2

    def update(self) -> None:
        """Choose the next scale by what `unscale_` found; once after each `step`. RuntimeError without one."""
        if self._stage == 0:
            raise RuntimeError("GradScaler.update: no gradients were unscaled since the last one; call step() first")
        scale, good = self._scale, self._good + 1
        if self.found_inf:
            scale, good = max(scale / FACTOR, SMALLEST), 0  # from 0 there would be no way back
        elif good >= INTERVAL:
            scale, good = scale * FACTOR if scale <= LARGEST / FACTOR else scale, 0
        self._set(scale, good)

    # ------------------------------------------------------------------ state

    def get_scale(self) -> float:
        """The present scale."""
        return self._scale

    def state_dict(self) -> dict[str, Any]:
        """Numbers that fit JSON: the scale, and the updates in a row without overflow."""
        return {"scale": self._scale, "_growth_tracker": self._good}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned; KeyError, TypeError or ValueError for what is no such state."""
        self._set(state_dict["scale"], state_dict["_growth_tracker"])
