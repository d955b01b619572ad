"""Sums that keep their digits: over axes, back to a shape that was broadcast, and into places of an array.

NumPy adds in pairs along the axis that its inner loop runs over, the one with the smallest stride. Along any other it
adds one term after the other to a total in the dtype of the terms: of float32 that has lost a digit after some 10⁴
terms, and ones no longer raise it from 2²⁴ on; of float16, from 2048 on. Such sums are taken in float64 here, and
rounded once. CuPy's reductions are trees already.

Beside them stands what they say of axes and shapes: `Axis`, `axis_of_number`, `normalize_axes`, `broadcasts_to`.
"""

from __future__ import annotations

import importlib
import math
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from minigrad.device.devices import is_array, is_host, on_device_of, xp

Axis = int | tuple[int, ...] | None

LONG = 2048  # terms one after the other, above which a sum is taken in float64
BLOCK = 256  # terms of a sum by the BLAS, which has several totals
MANY = 8  # values for an element, from which on a copy of the array in float64 takes little of the time


def sum_over(x: Any, axis: Axis = None, keepdims: bool = False, method: str = "sum") -> Any:
    """``x.sum(axis, keepdims=keepdims)`` of an array on any device, or a tensor, in its dtype; or another `method`."""
    add = partial(getattr(x, method), axis=axis if x.ndim else axis_of_number(axis), keepdims=keepdims)
    kind = x.dtype.char if type(x) is np.ndarray else ""
    if kind == "e" or (kind == "f" and x.size > LONG and terms_in_a_row(x, axis) > LONG):
        return add(dtype=np.float64).astype(x.dtype)
    return add()


def column_sums(x: Any) -> Any:
    """``sum_over(x, 0)`` of a matrix: in host memory a product with ones, in a quarter of the time.

    Of many rows it is one of each block by the BLAS, and the sum of these in float64.
    """
    if type(x) is not np.ndarray or x.dtype.char not in "fd":
        return sum_over(x, 0)
    if len(x) <= LONG:
        return np.ones(len(x), x.dtype) @ x
    blocks = len(x) // BLOCK
    sums = np.ones(BLOCK, x.dtype) @ x[:blocks * BLOCK].reshape(blocks, BLOCK, x.shape[1])
    return (sums.sum(axis=0, dtype=np.float64) + x[blocks * BLOCK:].sum(axis=0)).astype(x.dtype)


def widened(x: Any) -> Any:
    """x, an array or a tensor, in float32 if it is float16: for sums, which float16 rounds at each term."""
    return x.astype(np.float32) if x.dtype.char == "e" else x


def narrowed(x: Any, dtype: Any) -> Any:
    """What was computed of `widened` operands, an array or a tensor, in their `dtype` again."""
    return x if x.dtype == dtype else x.astype(dtype)


def axis_of_number(axis: Any) -> Axis:
    """None for None, 0, -1 and (), which NumPy takes as axes of a number, and CuPy does not; its errors for others."""
    if axis is not None and axis != ():
        normalize_axis_index(axis, 1)
    return None


def normalize_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The axes, None for all, as distinct ints from 0; NumPy's errors for one that does not exist, or is there twice.

    Of a number there are none, whatever `axis` is.
    """
    if axis is None or not ndim:
        return tuple(range(ndim))
    return normalize_axis_tuple(axis, ndim)


def terms_in_a_row(x: Any, axis: Axis) -> int:
    """How many terms of the sum of x over `axis` NumPy may add one after the other."""
    axes = normalize_axes(axis, x.ndim)
    terms = math.prod([x.shape[a] for a in axes])
    if x.flags.c_contiguous:  # the last axes are those that are added in pairs
        for a in reversed(range(x.ndim)):
            if a not in axes:
                break
            terms //= x.shape[a]
    return terms


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


# --------------------------------------------------------------------------- into places, in place


def add_at(array: Any, index: Any, values: Any) -> None:
    """``array[index] += values`` in place, where an index that occurs twice is added twice (scatter-add).

    float16 is added up in float64 and rounded once; so is float32 in host memory, where `index` picks rows or there are
    many values for an element. On a GPU the additions are atomic: their order varies between runs, and so do a floating
    sum's last bits. There CuPy has them for integers of 32 and 64 bits alone, and raises a TypeError for others.
    """
    picks_rows = isinstance(index, np.ndarray) and index.dtype.kind == "i" and array.ndim > 1
    if picks_rows and type(array) is np.ndarray and array.dtype.char in "efd":
        add_to_rows(array, index, values)
    else:
        with on_device_of(array):
            add_each(array, index, values)


def add_to_rows(array: Any, index: Any, values: Any) -> None:
    """`add_at` to rows of floats in host memory, to each once: Sᵀ values, in a fifth of the time of np.add.at.

    S is sparse, float64, and has for each entry of `index` a row with a one in the column of the row that it picks.
    """
    sparse = importlib.import_module("scipy.sparse")
    values = np.broadcast_to(values, index.shape + array.shape[1:]).reshape(index.size, math.prod(array.shape[1:]))
    rows, columns = np.unique(np.arange(len(array))[index].reshape(-1), return_inverse=True)
    selection = sparse.csr_array((np.ones(index.size), columns, np.arange(index.size + 1)), (index.size, rows.size))
    array[rows] += (selection.T @ values).reshape(rows.size, *array.shape[1:])


def add_each(array: Any, index: Any, values: Any) -> None:
    """`add_at`, one value after the other."""
    namespace, host = xp(array), is_host(array)
    many = host and array.dtype == np.float32 and np.size(values) > max(LONG, MANY * array.size)
    if array.dtype == np.float16 or many:
        wide = array.astype(np.float64)
        # Of two dtypes it takes 20 times as long.
        namespace.add.at(wide, index, values.astype(np.float64) if is_array(values) else values)
        array[...] = wide
    elif array.dtype == np.int64 and not host:  # CuPy adds to uint64: the same, modulo 2⁶⁴
        namespace.add.at(array.view(np.uint64), index, namespace.asarray(values, np.int64).view(np.uint64))
    else:
        namespace.add.at(array, index, values)
