"""Making tensors: from an array, or filled."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device import module_for
from minigrad.tape import Array, wrap
from minigrad.tensor import Tensor

_DLPACK_CPU = 1  # kDLCPU in dlpack.h


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor that shares the memory of `array`."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy: expected a numpy.ndarray, got {type(array).__name__}")
    return wrap(_numeric(array, "from_numpy"))


def _numeric(array: Array, operation: str) -> Array:
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{operation}: data must be boolean, integer or floating, got dtype {array.dtype}")
    return array


def from_dlpack(source: Any) -> Tensor:
    """A tensor that shares the memory of `source`, another library's array, on the host or on a GPU."""
    kind, index = source.__dlpack_device__()
    module = np if kind == _DLPACK_CPU else module_for(f"cuda:{index}")
    return wrap(_numeric(module.from_dlpack(source), "from_dlpack"))


def _filled(shape: Any, value: float, dtype: Any, device: str, requires_grad: bool) -> Tensor:
    return Tensor(np.full(shape, value, dtype), device=device, requires_grad=requires_grad)


def zeros(shape: Any, dtype: Any = np.float32, device: str = "cpu", requires_grad: bool = False) -> Tensor:
    """A tensor of zeros of that `shape`, an int or a tuple; `dtype`, `device` and `requires_grad` as for `Tensor`."""
    return _filled(shape, 0, dtype, device, requires_grad)


def ones(shape: Any, dtype: Any = np.float32, device: str = "cpu", requires_grad: bool = False) -> Tensor:
    """A tensor of ones of that `shape`, an int or a tuple; `dtype`, `device` and `requires_grad` as for `Tensor`."""
    return _filled(shape, 1, dtype, device, requires_grad)


def full(shape: Any, value: float, dtype: Any = np.float32, device: str = "cpu", requires_grad: bool = False) -> Tensor:
    """A tensor of that `shape` filled with `value`; `dtype`, `device` and `requires_grad` as for `Tensor`."""
    return _filled(shape, value, dtype, device, requires_grad)


def arange(*bounds: float, dtype: Any = None, device: str = "cpu") -> Tensor:
    """Evenly spaced numbers, 1-D.

    Args:
        bounds: ``stop``; ``start, stop``; or ``start, stop, step``. Start is included, stop is not.
        dtype: by default int64, or float32 if one of the bounds is a float.
        device: as for `Tensor`.
    """
    kind = np.float32 if any(isinstance(b, float) for b in bounds) else np.int64
    return Tensor(np.arange(*bounds, dtype=dtype or kind), device=device)
