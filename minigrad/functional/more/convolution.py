"""Convolution and pooling along the last axis: what one does with the windows that slide along it.

Window l of length K reads ``x[…, l·stride + k·dilation]`` for k = 0 … K-1. A convolution multiplies the windows by a
kernel, as networks mean it: not reversed (a cross-correlation). Pooling takes their maximum or mean.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad import ops
from minigrad.arguments import public, whole_number
from minigrad.device import asarray_on
from minigrad.device.sums import sum_over
from minigrad.engine.primitive import primitive
from minigrad.functional.compositions import tap
from minigrad.ops.more.windows import add_windows, count_windows, sliding_windows
from minigrad.tensor import as_tensor


def as_floating(input: Any) -> Any:
    """The input as a tensor; integers become float32."""
    input = as_tensor(input)
    return input if input.dtype.kind == "f" else input.astype(np.float32)


# --------------------------------------------------------------------------- convolution

# Shapes below: B stands for any leading axes, C and O for the channels of input and output, g for groups, K for the
# length of the kernel, T and L for the lengths of input and output.


def columns(input: Any, size: int, stride: int, padding: tuple[int, int], dilation: int, groups: int) -> Any:
    """What the kernel is multiplied by, one column for each place: (B, C, T) -> (B, g, C/g·K, L)."""
    *lead, channels, _ = input.shape
    if padding != (0, 0):
        input = ops.pad(input, ((0, 0),) * (len(lead) + 1) + (padding,))
    windows = sliding_windows(input, size, stride, dilation)  # (B, C, K, L)
    return windows.reshape((*lead, groups, channels // groups * size, windows.shape[-1]))


def kernel(weight: Any, groups: int) -> Any:
    """The weight as a matrix for each group: (O, C/g, K) -> (g, O/g, C/g·K)."""
    out_channels, channels, size = weight.shape
    return weight.reshape((groups, out_channels // groups, channels * size))


def conv1d_by_steps(input: Any, weight: Any, bias: Any, stride: int, padding: tuple[int, int], dilation: int,
                    groups: int) -> Any:
    """conv1d as a composition of small operations."""
    cut = tap("columns", columns(input, weight.shape[-1], stride, padding, dilation, groups))
    products = ops.matmul(kernel(weight, groups), cut)  # (g, O/g, C/g·K) @ (B, g, C/g·K, L) -> (B, g, O/g, L)
    out = products.reshape((*input.shape[:-2], weight.shape[0], cut.shape[-1]))
    return out if bias is None else out + bias[:, None]


@primitive(floating=True, composition=conv1d_by_steps, precision="float16", fresh=True)
def _conv1d(input, weight, bias, stride, padding, dilation, groups):
    # The steps, on arrays. What is gained is memory: the tape keeps the input, not the columns, K times as large.
    return conv1d_by_steps(input, weight, bias, stride, padding, dilation, groups)


def by_group(g: Any, groups: int) -> Any:
    """The gradient of the output with its channels in groups: (B, O, L) -> (B, g, O/g, L)."""
    *lead, channels, length = g.shape
    return g.reshape((*lead, groups, channels // groups, length))


def conv1d_gradient_input(g, weight, input_shape, stride, padding, dilation, groups):
    # forward: out = W · columns, by group          so here: dcolumns = Wᵀ · dout
    grad_columns = ops.matmul(kernel(weight, groups).mT, by_group(g, groups))
    return scattered_columns(grad_columns, input_shape, weight.shape[-1], stride, padding, dilation)


def scattered_columns(grad_columns: Any, input_shape: tuple[int, ...], size: int, stride: int, padding: tuple[int, int],
                      dilation: int) -> Any:
    """The transpose of `columns`: (B, g, C/g·K, L) -> (B, C, T)."""
    # forward: the columns are windows of the padded input, so here: they are added to where they were cut out
    *lead, channels, length = input_shape
    windows = grad_columns.reshape((*lead, channels, size, grad_columns.shape[-1]))
    before, after = padding
    padded = add_windows(windows, before + length + after, stride, dilation)
    return padded[..., before:before + length] if padding != (0, 0) else padded


def conv1d_gradient_weight(g, input, weight_shape, stride, padding, dilation, groups):
    # forward: out = W · columns, by group          so here: dW = Σ_B dout · columnsᵀ, as one product over B·L
    cut = columns(input, weight_shape[-1], stride, padding, dilation, groups)
    return ops.matmul(side_by_side(by_group(g, groups)), side_by_side(cut).mT).reshape(weight_shape)


def side_by_side(x: Any) -> Any:
    """The matrices of all of B in a row: (B, g, n, L) -> (g, n, B·L)."""
    *lead, groups, n, length = x.shape
    count = math.prod(lead)
    return x.reshape((count, groups, n, length)).transpose((1, 2, 0, 3)).reshape((groups, n, count * length))


_conv1d.gradient(input=conv1d_gradient_input,
                 weight=conv1d_gradient_weight,
                 bias=lambda g: sum_over(g, (*range(len(g.shape) - 2), -1)))


@public
def conv1d(input: Any, weight: Any, bias: Any = None, stride: int = 1, padding: int | str = 0, dilation: int = 1,
           groups: int = 1) -> Any:
    """``out[b, o, l] = bias[o] + Σ_c Σ_k weight[o, c, k] · input[b, c, l·stride + k·dilation - padding]``.

    Args:
        input: (…, C_in, T), as a rule (batch, C_in, T); outside of T it is 0.
        weight: (C_out, C_in / groups, K)
        bias: (C_out,) or None
        stride: the step from one place of the kernel to the next.
        padding: zeros put on both sides, or ``"valid"``: none, or ``"same"``: as many as keep the length (for stride 1;
            of an odd number the right side has one more).
        dilation: the step from one element of the kernel to the next.
        groups: the channels of input and output are in so many groups, each seeing its own.

    Returns:
        (…, C_out, L) with ``L = (T + 2·padding - dilation·(K - 1) - 1) // stride + 1``

    Raises:
        ValueError: shapes that do not fit, a kernel longer than the padded input, a stride or dilation below 1.
        TypeError: a stride, dilation or padding that is not an integer.
    """
    input, weight = as_tensor(input), as_tensor(weight)
    if weight.dtype.kind != "f":
        input = as_floating(input)
    stride = whole_number(stride, "stride", "conv1d")
    dilation = whole_number(dilation, "dilation", "conv1d")
    groups = whole_number(groups, "groups", "conv1d")
    check_shapes(input, weight, bias, groups)
    size = weight.shape[-1]
    pair = padding_pair(padding, size, stride, dilation)
    length = input.shape[-1] + sum(pair)
    if count_windows(length, size, stride, dilation) < 1:
        raise ValueError(f"conv1d: the kernel spans {dilation * (size - 1) + 1} elements (length {size}, dilation "
                         f"{dilation}), the padded input has {length}, of shape {input.shape}")
    return _conv1d(input, weight, bias, stride, pair, dilation, groups)


def check_shapes(input: Any, weight: Any, bias: Any, groups: int) -> None:
    """ValueError unless the three fit together."""
    shapes = f"got {input.shape} and {weight.shape}"
    if input.ndim < 2 or weight.ndim != 3 or 0 in weight.shape:
        raise ValueError("conv1d: input (…, C_in, T) and weight (C_out, C_in / groups, K) expected, none of the "
                         f"weight's axes empty, {shapes}")
    if input.shape[-2] != weight.shape[1] * groups:
        raise ValueError(f"conv1d: input.shape[-2] == weight.shape[1] · groups, {shapes} with groups={groups}")
    if weight.shape[0] % groups:
        raise ValueError(f"conv1d: weight.shape[0] must be a multiple of groups, {shapes} with groups={groups}")
    if bias is not None and tuple(bias.shape) != weight.shape[:1]:
        raise ValueError(f"conv1d: bias.shape == (weight.shape[0],), got {tuple(bias.shape)} and {weight.shape}")


def padding_pair(padding: int | str, size: int, stride: int, dilation: int) -> tuple[int, int]:
    """How many zeros go before and after."""
    if padding == "valid":
        return 0, 0
    if padding == "same":
        if stride != 1:
            raise ValueError(f"conv1d: padding='same' needs stride 1, got stride {stride}")
        total = dilation * (size - 1)
        return total // 2, total - total // 2
    if isinstance(padding, str):
        raise ValueError(f"conv1d: padding must be an integer, 'same' or 'valid', got {padding!r}")
    count = whole_number(padding, "padding", "conv1d", least=0)
    return count, count


# --------------------------------------------------------------------------- pooling


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
        input = ops.pad(input, ((0, 0),) * (input.ndim - 1) + ((padding, after),), value=outside)
    return sliding_windows(input, size, stride, dilation), np.arange(count) * stride - padding
