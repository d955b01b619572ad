"""Windows that slide along the last axis, and adding windows back to where they came from: each other's transpose.

Window l of length K reads ``x[…, l·stride + k·dilation]`` for k = 0 … K-1. Convolution and pooling are what one does
with the windows: multiply them by a kernel, or take their maximum or mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.tensor import as_tensor


def count_windows(length: int, size: int, stride: int, dilation: int) -> int:
    """How many windows fit into `length` elements."""
    return (length - dilation * (size - 1) - 1) // stride + 1


def places(length: int, size: int, stride: int, dilation: int) -> list[slice]:
    """For each k, the elements that are the k-th of a window."""
    span = stride * (count_windows(length, size, stride, dilation) - 1) + 1
    return [slice(k * dilation, k * dilation + span, stride) for k in range(size)]


@primitive
def sliding_windows(x, size, stride, dilation):
    """``out[…, k, l] = x[…, l·stride + k·dilation]``: (…, T) to (…, K, L), with K = `size`; a copy."""
    return xp(x).stack([x[..., place] for place in places(x.shape[-1], size, stride, dilation)], axis=-2)


@primitive
def add_windows(windows, length, stride, dilation):
    """Zeros (…, T), T = `length`, with ``windows[…, k, l]`` added at ``l·stride + k·dilation``: overlaps add up."""
    out = xp(windows).zeros((*windows.shape[:-2], length), windows.dtype)
    for k, place in enumerate(places(length, windows.shape[-2], stride, dilation)):
        out[..., place] += windows[..., k, :]
    return out


sliding_windows.gradient(x=lambda g, x_shape, stride, dilation: add_windows(g, x_shape[-1], stride, dilation))
add_windows.gradient(windows=lambda g, windows_shape, stride, dilation:
                     sliding_windows(g, windows_shape[-2], stride, dilation))


def as_floating(input: Any) -> Any:
    """The input as a tensor; integers become float32."""
    input = as_tensor(input)
    return input if input.dtype.kind == "f" else input.astype(np.float32)
