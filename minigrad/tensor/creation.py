"""Making tensors: from an array, or filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.arguments import numbers_on
from minigrad.device import module_for, on_device
from minigrad.engine.node import Array, wrap
from minigrad.engine.operands import numeric
from minigrad.engine.primitive import public
from minigrad.tensor import Tensor, as_tensor

_DLPACK_CPU = 1  # kDLCPU in dlpack.h


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor that shares the memory of `array`."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy: expected a numpy.ndarray, got {type(array).__name__}")
    return wrap(numeric(array, "from_numpy"))


def from_dlpack(source: Any) -> Tensor:
    """A tensor that shares the memory of `source`, another library's array, on the host or on a GPU."""
    kind, index = source.__dlpack_device__()
    module = np if kind == _DLPACK_CPU else module_for(f"cuda:{index}")
    return wrap(numeric(module.from_dlpack(source), "from_dlpack"))


def _made(make: Callable[[Any], Array], device: str | None) -> Tensor:
    """The array that `make` makes by a namespace, NumPy's or a GPU's, where it will be: nothing is sent."""
    device = "cpu" if device is None else device
    with on_device(device):
        return wrap(numeric(make(module_for(device)), "full"))


@public
def full(shape: Any, value: Any, dtype: Any = np.float32, device: str = "cpu", requires_grad: bool = False) -> Tensor:
    """A tensor of that `shape` filled with `value`, a number or numbers that broadcast to the shape.

    `dtype`, `device` and `requires_grad` are as for `Tensor`.
    """
    if type(value) not in (bool, int, float):
        value = numbers_on(device, value, dtype, "full")
    return _made(lambda module: module.full(shape, value, dtype), device).requires_grad_(requires_grad)


@public
def zeros(shape: Any, dtype: Any = np.float32, device: str = "cpu", requires_grad: bool = False) -> Tensor:
    """A tensor of zeros of that `shape`, an int or a tuple; `dtype`, `device` and `requires_grad` as for `Tensor`."""
    return full(shape, 0, dtype, device, requires_grad)


@public
def ones(shape: Any, dtype: Any = np.float32, device: str = "cpu", requires_grad: bool = False) -> Tensor:
    """A tensor of ones of that `shape`, an int or a tuple; `dtype`, `device` and `requires_grad` as for `Tensor`."""
    return full(shape, 1, dtype, device, requires_grad)


@public
def zeros_like(x: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Zeros as `full_like` makes them."""
    return full_like(x, 0, dtype, device)


@public
def ones_like(x: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Ones as `full_like` makes them."""
    return full_like(x, 1, dtype, device)


@public
def full_like(x: Any, value: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor filled with `value`, of the shape of `x`, a tensor or an array.

    Its `dtype` and `device`, too, unless they are given, but not its ``requires_grad``.
    """
    like = as_tensor(x)
    return full(like.shape, value, like.dtype if dtype is None else dtype, like.device if device is None else device)


@public
def eye(n: int, m: int | None = None, dtype: Any = np.float32, device: str = "cpu") -> Tensor:
    """Ones on the diagonal and zeros elsewhere, (`n`, `m`), or (n, n); `dtype` and `device` as for `Tensor`."""
    return _made(lambda module: module.eye(n, m, dtype=dtype), device)


@public
def linspace(start: float, stop: float, num: int = 50, dtype: Any = np.float32, device: str = "cpu") -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, both included: (num,), computed in float64.

    `dtype` and `device` are as for `Tensor`.
    """
    start, stop = (numeric(np.asarray(bound), "linspace").item() for bound in (start, stop))
    return Tensor(np.linspace(start, stop, num, dtype=dtype), device=device)


@public
def arange(*bounds: float, dtype: Any = None, device: str = "cpu") -> Tensor:
    """Evenly spaced numbers, 1-D.

    Args:
        bounds: ``stop``; ``start, stop``; or ``start, stop, step``. Start is included, stop is not.
        dtype: by default int64, or float32 if one of the bounds is a float.
        device: as for `Tensor`.
    """
    kind = np.float32 if numeric(np.asarray(bounds), "arange").dtype.kind == "f" else np.int64
    return Tensor(np.arange(*bounds, dtype=dtype or kind), device=device)
