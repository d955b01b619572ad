"""What a primitive does with its operands before its forward sees them: conversion, dtypes, devices."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minigrad.device import asarray_on, device_of, is_array, plain, to_device
from minigrad.device.sums import sum_over
from minigrad.engine.node import Array, TensorBase

NUMERIC = frozenset("biuf")  # the kinds of dtypes that tensors have
REMEDY = "move one with .to(device), an array with Tensor(array, device=device)"


def as_operand(value: Any, args: Sequence[Any], operation: str) -> Any:
    """A differentiable argument as the forward gets it: NumPy scalars are weak, lists become arrays."""
    if isinstance(value, np.generic):
        number = numeric(value, operation)
        return float(number) if number.dtype.kind == "f" else number.item()  # of a long double item() is one again
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        like = next(a for a in args if isinstance(a, TensorBase))._data
        array = numeric(np.asarray([plain(part, operation) for part in value]), operation)
        return asarray_on(device_of(like), array, np.float32 if array.dtype.kind == "f" else None)
    data = value._data if isinstance(value, TensorBase) else value
    if not is_array(data):
        raise TypeError(f"{operation}: cannot use a {type(value).__name__} as an operand; give a Tensor, an array or a "
                        "number")
    return numeric(data, operation)


def numeric(array: Any, operation: str) -> Any:
    """The array as a `plain` one, or the NumPy scalar; TypeError for complex numbers, dates and what is no number."""
    if array.dtype.kind not in NUMERIC:
        raise TypeError(f"{operation}: data must be boolean, integer or floating, got dtype {array.dtype}")
    return plain(array, operation)


def beside(static: Any, args: Sequence[Any]) -> Any:
    """A host array that is a mask, a condition or an index, on the device of the tensors that it is used with."""
    places = [device_of(a._data) for a in args if isinstance(a, TensorBase)]
    return to_device(static, max(places, default="cpu"))  # a name of a GPU comes after "cpu"


def check_devices(values: Iterable[Any], operation: str) -> Array | None:
    """None if every array is in host memory; else one array of the device, having checked that they agree."""
    parts = itertools.chain.from_iterable(value if type(value) is tuple else (value,) for value in values)
    places = {"cpu" if type(part) is np.ndarray else device_of(part): part for part in parts if is_array(part)}
    if len(places) > 1:
        raise ValueError(f"{operation}: operands on {' and '.join(sorted(places))}; {REMEDY}")
    return next((array for place, array in places.items() if place != "cpu"), None)


def promote(operands: list[Any], floating: bool, broadcasts: bool) -> None:
    """Give the operands a common dtype where NumPy's own rules would widen a float: ints never do.

    Operands that broadcast are left to NumPy once all are floating. Any other forward may work in place on what the
    first operand gave, and so finds all of them in the widest dtype.
    """
    dtypes = [getattr(operand, "dtype", None) for operand in operands]
    floats = [dtype for dtype in dtypes if dtype is not None and dtype.kind == "f"]
    if not floats and not floating and not any(isinstance(operand, float) for operand in operands):
        return
    target = np.result_type(*floats) if floats else np.dtype(np.float32)
    for position, dtype in enumerate(dtypes):
        if dtype is not None and dtype != target and (dtype.kind != "f" or not broadcasts):
            operands[position] = asarray_on(device_of(operands[position]), operands[position], target)


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of `shape` can be broadcast to the shape `target`."""
    return len(shape) <= len(target) and all(n in (1, m) for n, m in zip(shape[::-1], target[::-1], strict=False))


def sum_to(gradient: Any, shape: tuple[int, ...]) -> Any:
    """Sum `gradient` over the axes along which `shape` was broadcast to its own: the transpose of broadcasting."""
    extra = gradient.ndim - len(shape)
    axes = (*range(extra), *(extra + i for i, n in enumerate(shape) if n == 1 and gradient.shape[extra + i] != 1))
    if axes:
        gradient = sum_over(gradient, axes)
    return gradient if gradient.shape == shape else gradient.reshape(shape)
