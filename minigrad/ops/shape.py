"""Operations that move elements about. Each is linear, and its rule is its transpose: the way back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from minigrad import device as devices
from minigrad.arguments import numeric_dtype, whole_number
from minigrad.device import is_array, plain, xp
from minigrad.device.sums import sum_over, sum_to
from minigrad.engine.node import TensorBase
from minigrad.engine.operands import as_operand, numeric
from minigrad.engine.primitive import primitive, public


@primitive
def reshape(x, shape):
    """x with another shape (a tuple; one entry may be -1); a view where possible."""
    return x.reshape(shape)


reshape.gradient(x=lambda g, x_shape: reshape(g, x_shape))


@public
def ravel(x: Any) -> Any:
    """x in one dimension; a view where possible."""
    return reshape(x, (-1,))


@public
def flatten(x: Any, start_axis: int = 0, end_axis: int = -1) -> Any:
    """x with the axes from `start_axis` to `end_axis` made one, as in PyTorch; a view where possible."""
    shape = tuple(x.shape) or (1,)
    start, end = (normalize_axis_index(axis, len(shape)) for axis in (start_axis, end_axis))
    if start > end:
        raise ValueError(f"start_axis {start_axis} comes after end_axis {end_axis}")
    return reshape(x, (*shape[:start], math.prod(shape[start:end + 1]), *shape[end + 1:]))


def rows(x: Any) -> Any:
    """``(…, D) → (N, D)``."""
    shape = x.shape
    return x if len(shape) == 2 else x.reshape((math.prod(shape[:-1]), shape[-1]))


@primitive
def expand_dims(x, axis):
    """x with an axis of length 1 put in at `axis`. A view."""
    return xp(x).expand_dims(x, axis)


@primitive
def squeeze(x, axis=None):
    """x without its axes of length 1 (or without those in `axis`, which must have length 1). A view."""
    return xp(x).squeeze(x, axis)


expand_dims.gradient(x=lambda g, x_shape: reshape(g, x_shape))
squeeze.gradient(x=lambda g, x_shape: reshape(g, x_shape))


@primitive
def transpose(x, axes=None):
    """x with its axes in another order; all reversed if `axes` is None. A view."""
    return x.transpose(axes) if axes is not None else x.transpose()


transpose.gradient(x=lambda g, axes: transpose(g, None if axes is None else inverse_permutation(axes)))


def inverse_permutation(axes: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `axes`."""
    return tuple(sorted(range(len(axes)), key=lambda i: axes[i] % len(axes)))


@primitive
def swapaxes(x, axis1, axis2):
    """x with the axes `axis1` and `axis2` exchanged. A view."""
    return x.swapaxes(axis1, axis2)


swapaxes.gradient(x=lambda g, axis1, axis2: swapaxes(g, axis1, axis2))


@primitive
def flip(x, axis=None):
    """x reversed along `axis` (all axes if None). A view."""
    return xp(x).flip(x, axis)


flip.gradient(x=lambda g, axis: flip(g, axis))


@primitive(fresh=True)
def tril(x, k=0):
    """x with everything above the k-th diagonal of its last two axes set to 0."""
    return xp(x).tril(x, k)


@primitive(fresh=True)
def triu(x, k=0):
    """x with everything below the k-th diagonal of its last two axes set to 0."""
    return xp(x).triu(x, k)


tril.gradient(x=lambda g, k: tril(g, k))
triu.gradient(x=lambda g, k: triu(g, k))


@primitive
def pad(x, widths, value=0):
    """x with `value` put around it, as NumPy's pad does in the mode "constant".

    `widths` is a pair (before, after) for each axis, or one pair or one int for all of them.
    """
    numeric(value if is_array(value) else np.asarray(value), "pad")
    return xp(x).pad(x, pairs(widths, x.ndim), mode="constant", constant_values=value)


def pairs(widths: Any, ndim: int) -> list[list[int]]:
    """A pair for each axis, as CuPy wants them."""
    return np.broadcast_to(widths, (ndim, 2)).tolist()


def pad_gradient(g, x_shape, widths):
    return g[tuple(slice(start, start + n) for (start, _), n in zip(pairs(widths, len(x_shape)), x_shape, strict=True))]


pad.gradient(x=pad_gradient)

# --------------------------------------------------------------------------- repeating


@primitive
def broadcast_to(x, shape):
    """x repeated, without a copy, to `shape` by NumPy's rules."""
    return xp(x).broadcast_to(x, shape)


broadcast_to.gradient(x=lambda g, x_shape: sum_to(g, x_shape))


@primitive(fresh=True)
def tile(x, reps):
    """x laid out `reps` times along each axis, ``[a, b] -> [a, b, a, b]``: NumPy's tile, PyTorch's Tensor.repeat.

    The shorter of `reps` (a tuple, or an int) and the shape of x is filled up with ones in front.
    """
    return xp(x).tile(x, reps)


def tile_gradient(g, x_shape, reps):
    # forward: along each axis `reps` copies of x, one after the other      so here: (reps, n) for each axis, summed
    given = tuple(reps) if isinstance(reps, Iterable) else (reps,)
    ndim = max(len(given), len(x_shape))
    counts, shape = ((1,) * (ndim - len(some)) + some for some in (given, x_shape))
    apart = reshape(g, tuple(n for pair in zip(counts, shape, strict=True) for n in pair))
    return reshape(sum_over(apart, tuple(range(0, 2 * ndim, 2))), x_shape)


tile.gradient(x=tile_gradient)

# --------------------------------------------------------------------------- joining, and cutting into pieces


@primitive
def _concatenate(x, y, axis):
    """x, and y behind it unless it is None."""
    return xp(x).concatenate([x] if y is None else [x, y], axis=axis)


@_concatenate.joint_gradient("x", "y")
def concatenate_gradient(g, x_shape, axis):
    # forward: y stands behind x along `axis`; so here: each gets the part where it stands.
    return split(g, [x_shape[axis], g.shape[axis] - x_shape[axis]], axis)


@public
def concatenate(tensors: Sequence[Any], axis: int | None = 0) -> Any:
    """The tensors (or arrays) joined along an existing axis, ``concatenate([a, b], axis=1)``; the other axes agree.

    With None for the axis they are flattened first, as in NumPy.
    """
    joined = [plain(t, "concatenate") for t in tensors]
    if not joined:
        raise ValueError("needs at least one tensor")
    if axis is None:
        joined, axis = [ravel(t) for t in joined], 0
    tensor = next((t for t in joined if isinstance(t, TensorBase)), None)
    if tensor is None:
        return xp(joined[0]).concatenate(joined, axis=axis)
    # A list is weak beside a tensor, wherever that stands.
    joined = [t if isinstance(t, TensorBase) else as_operand(t, [tensor], "concatenate") for t in joined]
    at = normalize_axis_index(axis, len(joined[0].shape))
    if len({(t.ndim, t.shape[:at] + t.shape[at + 1:]) for t in joined}) > 1:
        raise ValueError(f"needs shapes that agree but in axis {axis}, got {', '.join(str(t.shape) for t in joined)}")
    # The common dtype of all, since that of two may be too narrow for a third: of int64 and float16 it is float16.
    dtypes = {t.dtype for t in joined}
    common = np.result_type(*[dtype for dtype in dtypes if dtype.kind == "f"] or dtypes)
    joined = [t if t.dtype == common else astype(t, common) for t in joined]
    while True:  # pairs of neighbours, then pairs of these, …
        joined = [_concatenate(x, y, axis) for x, y in itertools.zip_longest(joined[::2], joined[1::2])]
        if len(joined) == 1:
            return joined[0]


@public
def stack(tensors: Sequence[Any], axis: int = 0) -> Any:
    """The tensors (or arrays), all of one shape, joined along a new axis."""
    return concatenate([expand_dims(t, axis) for t in tensors], axis)


@public
def split(x: Any, sizes: int | Sequence[int], axis: int = 0) -> tuple[Any, ...]:
    """x cut along `axis` into pieces of the given size (the last may be smaller), or of the given sizes. Views."""
    axis = normalize_axis_index(axis, len(x.shape))
    length = x.shape[axis]
    if not isinstance(sizes, Iterable):
        sizes = [min(sizes, length - start) for start in range(0, length, sizes)]
    if sum(sizes) != length or min(sizes, default=0) < 0:
        raise ValueError(f"the sizes {list(sizes)} must add up to {length}, the length of axis {axis}")
    ends = zip(sizes, itertools.accumulate(sizes), strict=True)
    return tuple([x[(*(slice(None),) * axis, slice(stop - size, stop))] for size, stop in ends])


@public
def chunk(x: Any, chunks: int, axis: int = 0) -> tuple[Any, ...]:
    """x cut along `axis` into `chunks` pieces, the last smaller or missing if it must be, as in PyTorch. Views."""
    size = -(-x.shape[axis] // whole_number(chunks, "chunks", "chunk"))
    return split(x, size if size else [0] * chunks, axis)


def along_one_axis(function: Callable[..., Any], x: Any, axis: int | None) -> Any:
    """``function(x, axis)``; of the flattened x if `axis` is None, and of a number as one element of axis 0."""
    if axis is None:
        return function(ravel(x), 0)
    return function(x, axis) if x.shape else reshape(function(ravel(x), axis), ())


# --------------------------------------------------------------------------- another dtype, another device


@primitive(fresh=True)
def astype(x, dtype):
    """x in another dtype (a copy); the gradient is cast back."""
    return x.astype(numeric_dtype(dtype, "astype"))


@primitive
def to_device(x, device):
    """x on another device ("cpu", "cuda", "cuda:1"); the gradient travels back."""
    return devices.to_device(x, device)


astype.gradient(x=lambda g, x_dtype: g.astype(x_dtype))
to_device.gradient(x=lambda g, x_device: to_device(g, x_device))
