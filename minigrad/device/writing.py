"""Writing into an array, in place, where NumPy and CuPy do it best in different ways."""

from __future__ import annotations

from typing import Any

import numpy

from minigrad.device.devices import is_host, on_device_of, xp


def add_at(array: Any, index: Any, values: Any) -> None:
    """``array[index] += values`` in place, where an index that occurs twice is added twice (scatter-add).

    On a GPU the additions are atomic: their order varies between runs, and so do a floating sum's last bits. There
    CuPy has them for integers of 32 and 64 bits alone, and raises a TypeError for others.
    """
    namespace = xp(array)
    with on_device_of(array):
        if namespace is not numpy and array.dtype == numpy.int64:  # CuPy adds to uint64: the same, modulo 2⁶⁴
            array, values = array.view(numpy.uint64), namespace.asarray(values, numpy.int64).view(numpy.uint64)
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
