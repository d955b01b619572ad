"""Sums that keep their digits, and those that are the transpose of broadcasting.

NumPy adds in pairs along the axis that its inner loop runs over, the one with the smallest stride. Along any other it
adds one term after the other to a total in the dtype of the terms: of float32 that has lost a digit after some 10⁴
terms, and ones no longer raise it from 2²⁴ on; of float16, from 2048 on. Such sums are taken in float64 here, and
rounded once. CuPy's reductions are trees already.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

Axis = int | tuple[int, ...] | None

LONG = 2048  # terms one after the other, above which a sum is taken in float64
BLOCK = 256  # terms of a sum by the BLAS, which has several totals


def sum_over(x: Any, axis: Axis = None, keepdims: bool = False, method: str = "sum") -> Any:
    """``x.sum(axis, keepdims=keepdims)`` of an array on any device, or a tensor, in its dtype; or another `method`."""
    axis, add = axis if x.ndim else normalize_axes(axis, 0) or None, getattr(x, method)  # CuPy knows none of a number
    kind = x.dtype.char if type(x) is np.ndarray else ""
    if kind == "e" or (kind == "f" and x.size > LONG and terms_in_a_row(x, axis) > LONG):
        return add(axis=axis, keepdims=keepdims, dtype=np.float64).astype(x.dtype)
    return add(axis=axis, keepdims=keepdims)


def running_sums(x: Any, axis: int) -> Any:
    """``x.cumsum(axis)``, as `sum_over`."""
    long = type(x) is np.ndarray and x.dtype.char == "f" and x.size > LONG
    if long or x.dtype.char == "e":
        return x.cumsum(axis=axis, dtype=np.float64).astype(x.dtype)
    return x.cumsum(axis=axis)


def column_sums(x: Any) -> Any:
    """``sum_over(x, 0)`` of a matrix: in host memory a product with ones, in a quarter of the time."""
    if type(x) is not np.ndarray or x.dtype.char not in "fd":
        return sum_over(x, 0)
    return np.ones(len(x), x.dtype) @ x if len(x) <= LONG else long_column_sums(x)


def long_column_sums(x: Any) -> Any:
    """`column_sums` of many rows: of blocks by the BLAS, and of these in float64."""
    blocks = len(x) // BLOCK
    sums = np.ones(BLOCK, x.dtype) @ x[:blocks * BLOCK].reshape(blocks, BLOCK, x.shape[1])
    return (sums.sum(axis=0, dtype=np.float64) + x[blocks * BLOCK:].sum(axis=0)).astype(x.dtype)


def widened(x: Any) -> Any:
    """x, an array or a tensor, in float32 if it is float16: for sums, which float16 rounds at each term."""
    return x.astype(np.float32) if x.dtype.char == "e" else x


def narrowed(x: Any, dtype: Any) -> Any:
    """What was computed of `widened` operands, an array or a tensor, in their `dtype` again."""
    return x if x.dtype == dtype else x.astype(dtype)


def normalize_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The axes as distinct non-negative ints; NumPy's errors for one that does not exist, or is named twice.

    None stands for all. For a number, 0 and -1 do, too, as in NumPy.
    """
    if axis is None or (ndim == 0 and axis in (0, -1)):
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
