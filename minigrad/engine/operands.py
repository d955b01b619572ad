"""What a primitive does with its operands before its forward sees them: conversion, dtypes, devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minigrad.device import asarray_on, device_of, is_array, is_host, to_device
from minigrad.engine.calls import shown
from minigrad.engine.node import Array, TensorBase

REMEDY = "move one with .to(device), an array with Tensor(array, device=device)"


def as_operand(value: Any, args: Sequence[Any], operation: str) -> Any:
    """A differentiable argument that is not a tensor: NumPy scalars are weak, lists become arrays."""
    if is_array(value):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        like = next(a for a in args if isinstance(a, TensorBase))._data
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{operation}: cannot use {value!r} as an operand; give a Tensor, array or numbers")
        return asarray_on(device_of(like), array, np.float32 if array.dtype.kind == "f" else None)
    raise TypeError(f"{operation}: cannot use a {type(value).__name__} as an operand; give a Tensor, an array or a "
                    "number")


def numbers_on(device: str, values: Any, dtype: Any, operation: str) -> Array:
    """An array, numbers or nested lists of them as an array of `dtype` on a device.

    TypeError for anything else, OverflowError for an integer that the dtype cannot hold.
    """
    if not is_array(values):
        values = values.item() if isinstance(values, np.generic) else values
        if np.size(values) and np.asarray(values).dtype.kind not in "biuf":
            raise TypeError(f"{operation}: cannot use {shown(values)} as numbers; give a Tensor, an array or numbers")
        try:
            values = np.asarray(values, dtype=dtype)
        except OverflowError as error:
            raise OverflowError(f"{operation}: {error}") from None
    return asarray_on(device, values, dtype)


def beside(static: Any, args: Sequence[Any]) -> Any:
    """A host array that is a mask, a condition or an index, on the device of the tensors that it is used with."""
    tensors = [a._data for a in args if isinstance(a, TensorBase)]
    return to_device(static, next((device_of(data) for data in tensors if not is_host(data)), "cpu"))


def check_devices(values: Iterable[Any], operation: str) -> Array | None:
    """None if every array is in host memory; else one array of the device, having checked that they agree."""
    anchor, host = None, False
    for value in values:
        if type(value) is np.ndarray:
            host = True
        elif is_array(value) and not is_host(value):
            if anchor is not None and device_of(value) != device_of(anchor):
                raise ValueError(f"{operation}: operands on {device_of(anchor)} and {device_of(value)}; {REMEDY}")
            anchor = value
    if anchor is not None and host:
        raise ValueError(f"{operation}: operands on cpu and {device_of(anchor)}; {REMEDY}")
    return anchor


def promote(raw: list[Any], positions: Sequence[int], floating: bool, broadcasts: bool) -> None:
    """Give the operands a common dtype where NumPy's own rules would widen a float: ints never do.

    Operands that broadcast are left to NumPy once all are floating. Any other forward may work in place on what the
    first operand gave, and so finds all of them in the widest dtype.
    """
    first, mixed, weak_float = None, False, False
    for position in positions:
        dtype = getattr(raw[position], "dtype", None)
        if dtype is None:
            weak_float = weak_float or isinstance(raw[position], float)
        elif first is None:
            first = dtype
        elif dtype is not first and dtype != first:
            mixed = True
    if first is None or (first.kind == "f" and not mixed):
        return
    dtypes = [getattr(raw[p], "dtype", None) for p in positions]
    floats = [dtype for dtype in dtypes if dtype is not None and dtype.kind == "f"]
    if floats:
        target = np.result_type(*floats)
    elif floating or weak_float:
        target = np.dtype(np.float32)
    else:
        return
    for position in positions:
        dtype = getattr(raw[position], "dtype", None)
        if dtype is not None and dtype != target and (dtype.kind != "f" or not broadcasts):
            raw[position] = asarray_on(device_of(raw[position]), raw[position], target)


def promote_all(raw: list[Any]) -> None:
    """Let integer operands have the floating ones' dtype."""
    floats = [a.dtype for a in raw if a.dtype.kind == "f"]
    if floats and len(floats) < len(raw):
        target = np.result_type(*floats)
        raw[:] = [a if a.dtype.kind == "f" else asarray_on(device_of(a), a, target) for a in raw]
