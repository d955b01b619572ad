"""Convolution along the last axis, as networks mean it: the kernel is not reversed (a cross-correlation)."""

from __future__ import annotations

import math
from typing import Any

from minigrad import ops
from minigrad.arguments import public, whole_number
from minigrad.engine.primitive import primitive
from minigrad.functional.compositions import tap
from minigrad.functional.windows import add_windows, as_floating, count_windows, sliding_windows
from minigrad.ops.linalg import batched_matmul
from minigrad.precision.half import total
from minigrad.tensor import as_tensor

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


@primitive(floating=True, composition=conv1d_by_steps, precision="float16")
def _conv1d(input, weight, bias, stride, padding, dilation, groups):
    # The steps, on arrays. What is gained is memory: the tape keeps the input, not the columns, K times as large.
    return conv1d_by_steps(input, weight, bias, stride, padding, dilation, groups)


def by_group(g: Any, groups: int) -> Any:
    """The gradient of the output with its channels in groups: (B, O, L) -> (B, g, O/g, L)."""
    *lead, channels, length = g.shape
    return g.reshape((*lead, groups, channels // groups, length))


def conv1d_gradient_input(g, weight, input_shape, stride, padding, dilation, groups):
    # forward: out = W · columns, by group          so here: dcolumns = Wᵀ · dout
    *lead, channels, length = input_shape
    grad_columns = batched_matmul(kernel(weight, groups).mT, by_group(g, groups))
    # forward: the columns are windows of the padded input, so here: they are added to where they were cut out
    windows = grad_columns.reshape((*lead, channels, weight.shape[-1], g.shape[-1]))
    before, after = padding
    padded = add_windows(windows, before + length + after, stride, dilation)
    return padded[..., before:before + length] if padding != (0, 0) else padded


def conv1d_gradient_weight(g, input, weight_shape, stride, padding, dilation, groups):
    # forward: out = W · columns, by group          so here: dW = Σ_B dout · columnsᵀ, as one product over B·L
    cut = columns(input, weight_shape[-1], stride, padding, dilation, groups)
    return batched_matmul(side_by_side(by_group(g, groups)), side_by_side(cut).mT).reshape(weight_shape)


def side_by_side(x: Any) -> Any:
    """The matrices of all of B in a row: (B, g, n, L) -> (g, n, B·L)."""
    *lead, groups, n, length = x.shape
    count = math.prod(lead)
    return x.reshape((count, groups, n, length)).transpose((1, 2, 0, 3)).reshape((groups, n, count * length))


_conv1d.gradient(input=conv1d_gradient_input,
                 weight=conv1d_gradient_weight,
                 bias=lambda g: total(g, (*range(len(g.shape) - 2), -1)))


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
