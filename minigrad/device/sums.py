"""Sums that keep their digits, in host memory.

NumPy adds in pairs along the axis that its inner loop runs over, the one with the smallest stride. Along any other it
adds one term after the other to a total in the dtype of the terms: of float32 that has lost a digit after some 10⁴
terms, and ones no longer raise it from 2²⁴ on; of float16, from 2048 on. Here blocks of such an axis are summed first,
and then the sums of the blocks, in float64. CuPy's reductions are trees already.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

LONG = 2048  # terms one after the other, above which a sum is taken in blocks
BLOCK, BLOCK_OF_BLAS = 64, 256  # terms: the BLAS has several totals for each
NARROW, IN_CACHE = 96, 2**23  # columns and bytes, up to which the BLAS is quicker than NumPy with a block


def sum_over(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """``x.sum(axis, keepdims=keepdims)`` of an array on any device, or a tensor, in its dtype; float16 rounds once."""
    axis = axis if x.ndim else None  # CuPy knows no axis of a number
    if loses_digits(x, axis):
        return wide_sum_over(x, axis, keepdims).astype(x.dtype)
    if type(x) is np.ndarray and x.dtype.char == "e":
        return x.sum(axis=axis, keepdims=keepdims, dtype=np.float32).astype(x.dtype)
    return x.sum(axis=axis, keepdims=keepdims)


def widened(x: Any) -> Any:
    """x, an array or a tensor, in float32 if it is float16: for sums, which float16 rounds at each term."""
    return x.astype(np.float32) if x.dtype.char == "e" else x


def narrowed(x: Any, dtype: Any) -> Any:
    """What was computed of `widened` operands, an array or a tensor, in their `dtype` again."""
    return x if x.dtype == dtype else x.astype(dtype)


def loses_digits(x: Any, axis: Any) -> bool:
    """Whether NumPy, summing the host array x over `axis`, adds more than `LONG` terms one after the other."""
    if type(x) is not np.ndarray or x.size <= LONG or x.dtype.char not in "efd":
        return False
    if x.flags.forc if axis is None else type(axis) is int and -x.ndim <= axis < x.ndim and x.shape[axis] <= LONG:
        return False  # the usual cases, in no time
    try:
        axes = reduced_axes(x, axis)
    except (TypeError, ValueError):  # the sum will say what is wrong with it
        return False
    terms = math.prod([x.shape[a] for a in axes])
    if terms <= LONG:
        return False
    stride = None  # that of the next axis that would be part of the inner loop
    for a in sorted(range(x.ndim), key=lambda a: abs(x.strides[a]) or math.inf):  # what is broadcast is outermost
        if x.shape[a] > 1:
            if a not in axes or x.strides[a] == 0 or stride not in (None, x.strides[a]):
                break
            terms, stride = terms // x.shape[a], x.strides[a] * x.shape[a]
    return terms > LONG


def reduced_axes(x: Any, axis: Any) -> tuple[int, ...]:
    """The axes of a reduction that is given `axis`, none negative; AxisError for one that x lacks."""
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return normalize_axis_tuple(axes, x.ndim)


def wide_sum_over(x: Any, axis: Any, keepdims: bool = False) -> Any:
    """The sum of a host array over `axis`, in float64: in blocks along the longest of its reduced axes."""
    axes = reduced_axes(x, axis)
    order = sorted(range(x.ndim), key=lambda a: -abs(x.strides[a]))
    y, reduced = x.transpose(order), [a in axes for a in order]
    if x.dtype.char == "e":
        y = y.astype(np.float32)
    if y.flags.c_contiguous:  # neighbours that are both reduced, or both kept, are one axis
        starts = [i for i in range(y.ndim) if i == 0 or reduced[i] != reduced[i - 1]]
        y = y.reshape([math.prod(y.shape[i:j]) for i, j in zip(starts, [*starts[1:], y.ndim], strict=True)])
        reduced = [reduced[i] for i in starts]
    over = tuple([i for i, gone in enumerate(reduced) if gone])
    longest = max(over, key=lambda i: y.shape[i])
    sums, left = sums_of_blocks(y, longest)
    parts = [left, *sums_of_blocks(sums, longest)]  # of blocks of blocks: float64 takes NumPy five times as long
    out = np.asarray(sum(part.sum(axis=over, dtype=np.float64) for part in parts))
    kept = [a for a in order if a not in axes]
    out = out.reshape([x.shape[a] for a in kept]).transpose([kept.index(a) for a in sorted(kept)])
    return out.reshape([1 if a in axes else n for a, n in enumerate(x.shape)]) if keepdims else out


def sums_of_blocks(x: Any, axis: int, size: int = 0) -> tuple[Any, Any]:
    """x with the sums of its blocks along `axis` in place of their terms; and the terms that fill no block."""
    columns = math.prod(x.shape[axis + 1:])
    by_blas = x.flags.c_contiguous and (columns < NARROW or x.nbytes <= IN_CACHE)
    size = size or (BLOCK_OF_BLAS if by_blas else BLOCK)
    blocks, left = in_blocks(x, axis, size)
    if by_blas:
        sums = np.ones(size, x.dtype) @ blocks.reshape(*blocks.shape[:axis + 2], columns)
        return sums.reshape(*blocks.shape[:axis + 1], *blocks.shape[axis + 2:]), left
    return blocks.sum(axis=axis + 1), left


def in_blocks(x: Any, axis: int, size: int) -> tuple[Any, Any]:
    """Views of x: with `axis` as two, the blocks and the terms of each; and the terms that fill no block."""
    blocks, place = x.shape[axis] // size, (slice(None),) * axis
    whole = x[(*place, slice(blocks * size))].reshape(*x.shape[:axis], blocks, size, *x.shape[axis + 1:])
    return whole, x[(*place, slice(blocks * size, x.shape[axis]))]


def running_sums(x: Any, axis: int) -> Any:
    """``x.cumsum(axis)`` of a host array, by blocks: to the first term of each is added, in float64, all before it."""
    axis %= x.ndim
    place, out = (slice(None),) * axis, x.copy()
    starts = out[(*place, slice(BLOCK, None, BLOCK))]
    sums, _ = sums_of_blocks(x, axis, BLOCK)
    starts += sums.cumsum(axis=axis, dtype=np.float64)[(*place, slice(starts.shape[axis]))]
    blocks, left = in_blocks(out, axis, BLOCK)
    np.cumsum(blocks, axis=axis + 1, out=blocks)
    np.cumsum(left, axis=axis, out=left)
    return out
