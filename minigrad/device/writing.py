"""Writing into an array, in place, where NumPy and CuPy do it best in different ways."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device.devices import is_array, is_host, on_device_of, xp
from minigrad.device.sums import LONG

MANY = 8  # values for an element, from which on a copy of the array in float64 takes little of the time


def add_at(array: Any, index: Any, values: Any) -> None:
    """``array[index] += values`` in place, where an index that occurs twice is added twice (scatter-add).

    float16 is added up in float64 and rounded once; so is float32 in host memory, where there are many values for an
    element. On a GPU the additions are atomic: their order varies between runs, and so do a floating sum's last bits.
    There CuPy has them for integers of 32 and 64 bits alone, and raises a TypeError for others.
    """
    kind, host = array.dtype.char, is_host(array)
    many = host and kind == "f" and np.size(values) > max(LONG, MANY * array.size)
    add = add_in_double if kind == "e" or many else np.add.at if host else add_on_gpu
    add(array, index, values)


def add_in_double(array: Any, index: Any, values: Any) -> None:
    """`add_at` by way of a copy of the array in float64."""
    namespace = xp(array)
    with on_device_of(array):
        wide = array.astype(np.float64)
        # Of two dtypes it takes 20 times as long.
        namespace.add.at(wide, index, values.astype(np.float64) if is_array(values) else values)
        array[...] = wide


def add_on_gpu(array: Any, index: Any, values: Any) -> None:
    """`add_at` of an array on a GPU."""
    namespace = xp(array)
    with on_device_of(array):
        if array.dtype == np.int64:  # CuPy adds to uint64: the same, modulo 2⁶⁴
            array, values = array.view(np.uint64), namespace.asarray(values, np.int64).view(np.uint64)
        namespace.add.at(array, index, values)


def fill_rows(array: Any, rows: Any, value: float) -> None:
    """``array[rows] = value`` in place, for `rows` a boolean array, of which True says to fill that row.

    On a GPU every element is looked at: for a boolean index CuPy would count what is True, and so wait for the GPU.
    """
    if is_host(array):
        array[rows] = value
    else:
        with on_device_of(array):
            xp(array).copyto(array, value, where=rows.reshape(-1, *[1] * (array.ndim - 1)))
