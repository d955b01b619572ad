"""What a primitive does with its operands before its forward sees them: conversion, dtypes, devices, and its errors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from minigrad.device import asarray_on, device_of, is_array, is_host
from minigrad.signatures import parameter_names
from minigrad.tape import Array, TensorBase

F = TypeVar("F", bound=Callable[..., Any])
# PyTorch's spelling of an argument -> NumPy's, which is ours
TORCH_NAMES = {"dim": "axis", "keepdim": "keepdims", "start_dim": "start_axis", "end_dim": "end_axis"}


def in_our_names(keywords: dict[str, Any], parameters: Collection[str], operation: str) -> dict[str, Any]:
    """The keyword arguments, with ``dim`` and ``keepdim`` for the `parameters` ``axis`` and ``keepdims`` so named."""
    renamed = {}
    for name, value in keywords.items():
        ours = TORCH_NAMES.get(name, name)
        if ours in parameters and name not in parameters:
            if ours in keywords:
                raise TypeError(f"{operation}: {name} is another name for {ours}; give one of them")
            name = ours
        renamed[name] = value
    return renamed


def torch_names(function: F) -> F:
    """Let a function with the arguments ``axis`` and ``keepdims`` understand ``dim`` and ``keepdim`` too."""
    parameters = frozenset(parameter_names(function))
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if keywords and not TORCH_NAMES.keys().isdisjoint(keywords):
            keywords = in_our_names(keywords, parameters, name)
        return function(*args, **keywords)

    return call  # type: ignore[return-value]


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


def check_devices(values: Iterable[Any], operation: str) -> Array | None:
    """None if every array is in host memory; else one array of the device, having checked that they agree."""
    anchor, host = None, False
    for value in values:
        if type(value) is np.ndarray:
            host = True
        elif is_array(value) and not is_host(value):
            if anchor is not None and device_of(value) != device_of(anchor):
                raise ValueError(f"{operation}: operands on {device_of(anchor)} and {device_of(value)}; "
                                 "move one with .to(device)")
            anchor = value
    if anchor is not None and host:
        raise ValueError(f"{operation}: operands on cpu and {device_of(anchor)}; move one with .to(device)")
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


def explain(error: Exception, values: Iterable[Any], operation: str) -> Exception:
    """The same kind of error, its message naming the operation and the operands."""
    shown = [f"{tuple(v.shape)} {v.dtype}" if is_array(v) else repr(v)[:40] for v in values]
    kind = next(k for k in (IndexError, ValueError, TypeError) if isinstance(error, k))
    message = str(error)
    if message.startswith(f"{operation}: "):
        return kind(message)
    return kind(f"{operation}: {message} [operands: {'; '.join(shown)}]")
