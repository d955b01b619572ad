"""Windows that slide along an axis, and their transpose: adding each window where it was cut out."""

from __future__ import annotations

from typing import Any

from minigrad.arguments import public, single_axis, whole_number
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.more.shape import moveaxis
from minigrad.ops.shape import require_arrays, reshape


def count_windows(length: int, size: int, stride: int, dilation: int) -> int:
    """How many windows fit into `length` elements."""
    return (length - dilation * (size - 1) - 1) // stride + 1


def places(length: int, size: int, stride: int, dilation: int) -> list[slice]:
    """For each k, the elements that are the k-th of a window."""
    span = stride * (count_windows(length, size, stride, dilation) - 1) + 1
    return [slice(k * dilation, k * dilation + span, stride) for k in range(size)]


@primitive(fresh=True)
def sliding_windows(x, size, stride, dilation):
    """``out[…, k, l] = x[…, l·stride + k·dilation]``: (…, T) to (…, K, L), with K = `size`; a copy."""
    out = xp(x).empty((*x.shape[:-1], size, count_windows(x.shape[-1], size, stride, dilation)), x.dtype)
    for k, place in enumerate(places(x.shape[-1], size, stride, dilation)):
        out[..., k, :] = x[..., place]
    return out


@primitive(fresh=True)
def add_windows(windows, length, stride, dilation):
    """Zeros (…, T), T = `length`, with ``windows[…, k, l]`` added at ``l·stride + k·dilation``: overlaps add up."""
    out = xp(windows).zeros((*windows.shape[:-2], length), windows.dtype)
    for k, place in enumerate(places(length, windows.shape[-2], stride, dilation)):
        out[..., place] += windows[..., k, :]
    return out


sliding_windows.gradient(x=lambda g, x_shape, stride, dilation: add_windows(g, x_shape[-1], stride, dilation))
add_windows.gradient(windows=lambda g, windows_shape, stride, dilation:
                     sliding_windows(g, windows_shape[-2], stride, dilation))


@public
def unfold(x: Any, axis: int, size: int, step: int) -> Any:
    """The windows of length `size` along `axis`, one every `step` elements: PyTorch's Tensor.unfold, but a copy.

    `axis` counts the windows, ``(length - size) // step + 1`` of them; the elements of each stand along a new
    last axis. A number is one element along axis 0, of which the axis is not left.
    (Patches of images, PyTorch's functional.unfold, are `minigrad.functional.unfold`.)

    Raises:
        ValueError: a window longer than the axis, a size below 0, a step below 1.
        IndexError: an axis that x lacks.
    """
    require_arrays("unfold", x)
    if not len(x.shape):
        return unfold(reshape(x, (1,)), axis, size, step)[0]
    single_axis(axis, x.shape, "unfold")
    size, step = whole_number(size, "size", "unfold", least=0), whole_number(step, "step", "unfold")
    if size > x.shape[axis]:
        raise ValueError(f"unfold: size must be at most {x.shape[axis]}, the length of axis {axis} of shape "
                         f"{tuple(x.shape)}, got {size}")
    windows = sliding_windows(moveaxis(x, axis, -1), size, step, 1)  # (…, size, count)
    return moveaxis(windows, -1, axis % len(x.shape))
