"""Pooling along the last axis: the maximum or the mean of each window, as compositions over the windows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad import ops
from minigrad.arguments import public, whole_number
from minigrad.device import asarray_on
from minigrad.functional.windows import as_floating, sliding_windows


@public
def max_pool1d(input: Any, kernel_size: int, stride: int | None = None, padding: int = 0, dilation: int = 1,
               ceil_mode: bool = False) -> Any:
    """The largest element of each window. Elements that tie for it share the gradient equally, as in `minigrad.max`.

    Args:
        input: (…, T), as a rule (batch, channels, T).
        kernel_size: the length K of a window.
        stride: the step from one window to the next; by default K, so that they do not overlap.
        padding: how far the first window begins before, and the last may end after, the input; at most K/2. What is
            outside never is the largest.
        dilation: the step from one element of a window to the next.
        ceil_mode: also take a last window that begins within the input, or the padding before it, but ends beyond.

    Returns:
        (…, L) with ``L = (T + 2·padding - dilation·(K - 1) - 1) / stride + 1``, rounded down (up in `ceil_mode`).

    Raises:
        ValueError: a window longer than the padded input, a padding of more than K/2, sizes below 1.
        TypeError: sizes that are not integers.
    """
    input = as_floating(input)
    windows, _ = cut(input, kernel_size, stride, padding, dilation, ceil_mode, -math.inf, "max_pool1d")
    return windows.max(axis=-2)


@public
def avg_pool1d(input: Any, kernel_size: int, stride: int | None = None, padding: int = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Any:
    """The mean of each window.

    Args:
        input, kernel_size, stride, padding, ceil_mode: as in `max_pool1d`.
        count_include_pad: whether the zeros of the padding count as elements of a window. What a window of `ceil_mode`
            has beyond them never does.

    Returns:
        (…, L), L as in `max_pool1d` with dilation 1.

    Raises:
        ValueError, TypeError: as `max_pool1d`.
    """
    input = as_floating(input)
    windows, starts = cut(input, kernel_size, stride, padding, 1, ceil_mode, 0.0, "avg_pool1d")
    outside = padding if count_include_pad else 0
    first, end = np.maximum(starts, -outside), np.minimum(starts + kernel_size, input.shape[-1] + outside)
    counts = asarray_on(input.device, end - first, input.dtype)
    return windows.sum(axis=-2) / counts


def cut(input: Any, size: int, stride: int | None, padding: int, dilation: int, ceil_mode: bool, outside: float,
        operation: str) -> tuple[Any, Any]:
    """The windows (…, K, L), with the value `outside` beyond the input, and where in the input each begins (L,)."""
    size = whole_number(size, "kernel_size", operation)
    stride = size if stride is None else whole_number(stride, "stride", operation)
    padding = whole_number(padding, "padding", operation, least=0)
    dilation = whole_number(dilation, "dilation", operation)
    span = dilation * (size - 1) + 1
    if not input.ndim:
        raise ValueError(f"{operation}: input (…, T) expected, got a 0-d tensor")
    if 2 * padding > size:
        raise ValueError(f"{operation}: padding must be at most half of kernel_size {size}, got {padding}")
    length = input.shape[-1]
    room = length + 2 * padding - span
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and stride * (count - 1) >= length + padding:
        count -= 1  # the last window would begin beyond the input
    if count < 1:
        raise ValueError(f"{operation}: a window spans {span} elements, the padded input, of shape {input.shape}, has "
                         f"{length + 2 * padding}")
    after = max(padding, stride * (count - 1) + span - padding - length)
    if padding or after:
        input = ops.pad(input, ((0, 0),) * (input.ndim - 1) + ((padding, after),), outside)
    return sliding_windows(input, size, stride, dilation), np.arange(count) * stride - padding
