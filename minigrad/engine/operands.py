"""What a primitive does with its operands before its forward sees them: conversion, dtypes, devices."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minigrad.device import asarray_on, device_of, is_array, plain, to_device
from minigrad.engine.node import Array, TensorBase

NUMERIC = frozenset("biuf")  # the kinds of dtypes that tensors have
REMEDY = "move one with .to(device), an array with Tensor(array, device=device)"


def as_operand(value: Any, args: Sequence[Any], operation: str) -> Any:
    """A differentiable argument as the forward gets it: NumPy scalars are weak, lists become arrays."""
    if isinstance(value, TensorBase):
        return value._data
    if isinstance(value, np.generic):
        number = numeric(value, operation)
        return float(number) if number.dtype.kind == "f" else number.item()  # of a long double item() is one again
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        like = next(a for a in args if isinstance(a, TensorBase))._data
        array = numeric(np.asarray([plain(part, operation) for part in value]), operation)
        return asarray_on(device_of(like), array, np.float32 if array.dtype.kind == "f" else None)
    if not is_array(value):
        raise TypeError(f"{operation}: cannot use a {type(value).__name__} as an operand; give a Tensor, an array or a "
                        "number")
    return numeric(value, operation)


def as_static(value: Any, args: Sequence[Any], operation: str) -> Any:
    """Convert an argument without a gradient rule: a mask or an index moves to the tensors' device."""
    if isinstance(value, TensorBase):
        return value._data
    if type(value) is tuple:  # an index may have tensors in it
        return tuple([as_static(part, args, operation) for part in value])
    if isinstance(value, np.generic | complex | np.ndarray):
        value = as_operand(value, args, operation)
    if not isinstance(value, np.ndarray):
        return value
    places = [device_of(argument._data) for argument in args if isinstance(argument, TensorBase)]
    return to_device(value, max(places, default="cpu"))  # a name of a GPU comes after "cpu"


def numeric(array: Any, operation: str) -> Any:
    """The array as a `plain` one, or the NumPy scalar; TypeError for complex numbers, dates and what is no number."""
    if array.dtype.kind not in NUMERIC:
        raise TypeError(f"{operation}: data must be boolean, integer or floating, got dtype {array.dtype}")
    return plain(array, operation)


def check_devices(values: Iterable[Any], operation: str) -> Array | None:
    """None if every array is in host memory; else one array of the device, having checked that they agree."""
    parts = itertools.chain.from_iterable(value if type(value) is tuple else (value,) for value in values)
    places = {device_of(part): part for part in parts if is_array(part)}
    if len(places) > 1:
        raise ValueError(f"{operation}: operands on {' and '.join(sorted(places))}; {REMEDY}")
    return next((array for place, array in places.items() if place != "cpu"), None)


def promote(values: list[Any], positions: Iterable[int], floating: bool, broadcasts: bool) -> None:
    """Give the operands a common dtype where NumPy's own rules would widen a float: ints never do.

    Operands that broadcast are left to NumPy once all are floating. Any other forward may work in place on what the
    first operand gave, and so finds all of them in the widest dtype.
    """
    dtypes = {position: values[position].dtype for position in positions if is_array(values[position])}
    floats = [dtype for dtype in dtypes.values() if dtype.kind == "f"]
    if floats or floating or any(isinstance(values[position], float) for position in positions):
        target = np.result_type(*floats or [np.float32])
        for position, dtype in dtypes.items():
            if dtype != target and (dtype.kind != "f" or not broadcasts):
                values[position] = asarray_on(device_of(values[position]), values[position], target)
