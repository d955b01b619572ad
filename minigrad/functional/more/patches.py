"""Patches of images, as columns, and back: what turns an image into a sequence, or a convolution into a product."""

from __future__ import annotations

from typing import Any

from minigrad import ops
from minigrad.arguments import public, whole_number
from minigrad.ops.more.windows import add_windows, count_windows, sliding_windows
from minigrad.tensor import as_tensor

Size = int | tuple[int, int]


@public
def unfold(input: Any, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Any:
    """The patches of images, each as a column: PyTorch's. Patches side by side, for a `Linear`, are
    ``unfold(images, 4, stride=4).mT``. (Windows along one axis are ``x.unfold(axis, size, step)``.)

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: height and width of a patch, an int for both; so are the others.
        dilation: the step from one element of a patch to the next.
        padding: how many zeros the images get on each side.
        stride: the step from one patch to the next.

    Returns:
        (N, C·kernel height·kernel width, L): a column has its channels one after the other, each row by row; the L
        places of the patches go row by row, too.

    Raises:
        ValueError: another number of dimensions, a patch larger than the padded image.
        TypeError: no integers.
    """
    input = as_tensor(input)
    sizes, dilations, paddings, strides = _pairs("unfold", kernel_size, dilation, padding, stride)
    if input.ndim not in (3, 4):
        raise ValueError(f"unfold: input (N, C, H, W) or (C, H, W) expected, got shape {input.shape}; the windows "
                         "along one axis are x.unfold(axis, size, step)")
    if any(paddings):
        input = ops.pad(input, (*((0, 0),) * (input.ndim - 2), *((p, p) for p in paddings)))
    *lead, channels, height, width = input.shape
    rows, columns = _counts("unfold", (height, width), sizes, strides, dilations)
    down = sliding_windows(input.mT, sizes[0], strides[0], dilations[0])  # (…, C, W, kh, Lh)
    across = sliding_windows(down.transpose(*range(input.ndim - 2), -2, -1, -3), sizes[1], strides[1], dilations[1])
    patches = ops.swapaxes(across, -3, -2)  # (…, C, kh, kw, Lh, Lw)
    return patches.reshape((*lead, channels * sizes[0] * sizes[1], rows * columns))


@public
def fold(input: Any, output_size: Size, kernel_size: Size, dilation: Size = 1, padding: Size = 0,
         stride: Size = 1) -> Any:
    """Images with each patch added where it belongs: PyTorch's, and the transpose of `unfold`.

    Args:
        input: (N, C·kernel height·kernel width, L) or without N, as `unfold` returns.
        output_size: H and W.
        kernel_size, dilation, padding, stride: as of `unfold`.

    Returns:
        (N, C, H, W); elements that stand in several patches add up.

    Raises:
        ValueError: an input that does not fit.
        TypeError: no integers.
    """
    input = as_tensor(input)
    size, sizes, dilations, paddings, strides = _pairs("fold", output_size, kernel_size, dilation, padding, stride)
    padded = (size[0] + 2 * paddings[0], size[1] + 2 * paddings[1])
    rows, columns = _counts("fold", padded, sizes, strides, dilations)
    if input.ndim not in (2, 3) or input.shape[-2] % (sizes[0] * sizes[1]) or input.shape[-1] != rows * columns:
        raise ValueError(f"fold: input (…, C·{sizes[0]}·{sizes[1]}, {rows * columns}) expected, got {input.shape}")
    *lead, elements, _ = input.shape
    patches = input.reshape((*lead, elements // (sizes[0] * sizes[1]), *sizes, rows, columns))
    down = add_windows(ops.swapaxes(patches, -3, -2), padded[1], strides[1], dilations[1])  # (…, C, kh, Lh, W)
    images = add_windows(ops.moveaxis(down, -1, -3), padded[0], strides[0], dilations[0]).mT  # (…, C, H, W)
    return images[..., paddings[0]:paddings[0] + size[0], paddings[1]:paddings[1] + size[1]]


def _pairs(operation: str, *sizes: Size) -> list[tuple[int, int]]:
    """Each as a pair, for the height and the width; of the last but one, the padding, 0 is allowed."""
    pairs = []
    for i, size in enumerate(sizes):
        pair = list(size) if isinstance(size, (tuple, list)) else [size, size]
        if len(pair) != 2:
            raise ValueError(f"{operation}: sizes must be an int or a pair for height and width, got {size}")
        height, width = (whole_number(n, "a size", operation, 0 if i == len(sizes) - 2 else 1) for n in pair)
        pairs.append((height, width))
    return pairs


def _counts(operation: str, shape: tuple[int, int], sizes: tuple[int, int], strides: tuple[int, int],
            dilations: tuple[int, int]) -> list[int]:
    """How many patches there are down and across."""
    counts = [count_windows(*of_axis) for of_axis in zip(shape, sizes, strides, dilations, strict=True)]
    if min(counts) < 1:
        raise ValueError(f"{operation}: a patch of {sizes} with dilation {dilations} is larger than the padded image, "
                         f"of {shape}")
    return counts
