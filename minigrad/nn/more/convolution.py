"""Layers along the time axis of (batch, channels, time): convolution, pooling; and layers that join and part axes."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Literal

from minigrad import functional as F
from minigrad.arguments import whole_number
from minigrad.nn import init
from minigrad.nn.module import Module
from minigrad.nn.parameter import new_parameter
from minigrad.tensor import Tensor


class Conv1d(Module):
    """``y[o] = b[o] + Σ_c W[o, c] ⋆ x[c]``: (…, in_channels, T) → (…, out_channels, L), see `functional.conv1d`.

    Args:
        in_channels: C, of the input.
        out_channels: O, of the output.
        kernel_size: K, the length of the kernel.
        stride: the step from one place of the kernel to the next.
        padding: zeros put on both sides, or ``"valid"`` (none) or ``"same"`` (the length stays).
        dilation: the step from one element of the kernel to the next.
        groups: channels of input and output are in so many groups, each seeing its own.
        bias: whether there is a b.

    Attributes:
        weight: W, of shape (out_channels, in_channels / groups, kernel_size).
        bias: b, of shape (out_channels,), or None.

    Both begin uniform on ±1/√(K·C/groups), PyTorch's default.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1,
                 padding: int | Literal["same", "valid"] = 0, dilation: int = 1, groups: int = 1,
                 bias: bool = True) -> None:
        super().__init__()
        self.in_channels = whole_number(in_channels, "in_channels", "Conv1d")
        self.out_channels = whole_number(out_channels, "out_channels", "Conv1d")
        self.kernel_size = whole_number(kernel_size, "kernel_size", "Conv1d")
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.groups = whole_number(groups, "groups", "Conv1d")
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"Conv1d: in_channels {in_channels} and out_channels {out_channels} must be multiples of "
                             f"groups {groups}")
        self.weight = new_parameter(out_channels, in_channels // groups, kernel_size)
        self.bias = new_parameter(out_channels) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / sqrt(self.kernel_size * self.in_channels // self.groups)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve `x` of shape (…, in_channels, T)."""
        return F.conv1d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        """Sizes, and the options that are not the default."""
        options = {"padding": 0, "dilation": 1, "groups": 1}
        given = [f", {name}={getattr(self, name)!r}" for name, usual in options.items() if getattr(self, name) != usual]
        return (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
                f"{''.join(given)}, bias={self.bias is not None}")


class MaxPool1d(Module):
    """The largest element of each window along the last axis: (…, T) → (…, L), see `functional.max_pool1d`.

    Args:
        kernel_size: the length of a window.
        stride: the step from one window to the next; by default kernel_size.
        padding: how far windows reach beyond both ends.
        dilation: the step from one element of a window to the next.
        ceil_mode: whether a last window may end beyond that.
    """

    def __init__(self, kernel_size: int, stride: int | None = None, padding: int = 0, dilation: int = 1,
                 ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size = whole_number(kernel_size, "kernel_size", "MaxPool1d")
        self.stride = kernel_size if stride is None else stride
        self.padding, self.dilation, self.ceil_mode = padding, dilation, ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        """Pool `x` of shape (…, T)."""
        return F.max_pool1d(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)

    def extra_repr(self) -> str:
        """The options."""
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"dilation={self.dilation}, ceil_mode={self.ceil_mode}")


class AvgPool1d(Module):
    """The mean of each window along the last axis: (…, T) → (…, L), see `functional.avg_pool1d`.

    Args:
        kernel_size, stride, padding, ceil_mode: as for `MaxPool1d`.
        count_include_pad: whether the zeros of the padding count as elements of a window.
    """

    def __init__(self, kernel_size: int, stride: int | None = None, padding: int = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__()
        self.kernel_size = whole_number(kernel_size, "kernel_size", "AvgPool1d")
        self.stride = kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        """Pool `x` of shape (…, T)."""
        return F.avg_pool1d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        """The options."""
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"ceil_mode={self.ceil_mode}, count_include_pad={self.count_include_pad}")


class Flatten(Module):
    """The axes from `start_axis` to `end_axis` made one; by default all but the batch: (B, C, T) → (B, C·T).

    Args:
        start_axis: the first of them.
        end_axis: the last of them.
    """

    def __init__(self, start_axis: int = 1, end_axis: int = -1) -> None:
        super().__init__()
        self.start_axis, self.end_axis = start_axis, end_axis

    def forward(self, x: Tensor) -> Tensor:
        """Flatten `x`."""
        return x.flatten(self.start_axis, self.end_axis)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_axis={self.start_axis}, end_axis={self.end_axis}"


class Unflatten(Module):
    """One axis made several: ``Unflatten(1, (C, T))`` takes (B, C·T) to (B, C, T).

    Args:
        axis: the axis to part.
        unflattened_size: the lengths of the axes in its place; one of them may be -1.
    """

    def __init__(self, axis: int, unflattened_size: tuple[int, ...]) -> None:
        super().__init__()
        if not isinstance(unflattened_size, Iterable):
            raise TypeError(f"Unflatten: unflattened_size must be several lengths, got {unflattened_size!r}")
        self.axis, self.unflattened_size = axis, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        """Part the axis of `x`."""
        if not -x.ndim <= self.axis < x.ndim:
            raise IndexError(f"Unflatten: axis {self.axis} is out of range for shape {x.shape}")
        axis = self.axis % x.ndim
        return x.reshape((*x.shape[:axis], *self.unflattened_size, *x.shape[axis + 1:]))

    def extra_repr(self) -> str:
        """The axis and the lengths."""
        return f"axis={self.axis}, unflattened_size={self.unflattened_size}"
