"""The rarer ways to move elements about, and to repeat them. Each is linear, and its rule is its transpose.

What was repeated gets the sum of its repeats' gradients.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.arguments import public, single_axis, whole_number
from minigrad.device import is_array, to_numpy, xp
from minigrad.device.sums import sum_over
from minigrad.engine.primitive import primitive
from minigrad.ops.indexing import raw, take
from minigrad.ops.shape import broadcast_to, require_arrays, reshape, swapaxes, transpose


@public
def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Any:
    """x with the axes `source` (an int or several) moved to the places `destination`, as in NumPy. A view."""
    ndim = len(x.shape)
    ends = [tuple(a) if isinstance(a, Sequence) else (a,) for a in (source, destination)]
    for axes in ends:
        for a in axes:
            single_axis(a, x.shape, "moveaxis")
        if len({a % ndim for a in axes}) < len(axes):
            raise ValueError(f"moveaxis: {axes} names an axis twice")
    if len(ends[0]) != len(ends[1]):
        raise ValueError(f"moveaxis: source and destination must be as many, got {ends[0]} and {ends[1]}")
    moved = {to % ndim: of % ndim for of, to in zip(*ends, strict=True)}
    others = iter([a for a in range(ndim) if a not in moved.values()])
    return transpose(x, tuple([moved[i] if i in moved else next(others) for i in range(ndim)]))


@primitive
def flip(x, axis=None):
    """x reversed along `axis` (all axes if None). A view."""
    return xp(x).flip(x, axis)


flip.gradient(x=lambda g, axis: flip(g, axis))


@primitive(fresh=True)
def roll(x, shift, axis=None):
    """x with its elements moved on by `shift` along `axis`, those at the end to the start; flattened if it is None.

    `shift` and `axis` may be tuples, as in NumPy.
    """
    shift = tuple(map(operator.index, shift)) if isinstance(shift, (tuple, list)) else operator.index(shift)
    return xp(x).roll(x, shift, axis)


roll.gradient(x=lambda g, shift, axis: roll(g, _back(shift), axis))


def _back(shift: int | tuple[int, ...]) -> int | tuple[int, ...]:
    return tuple([-n for n in shift]) if isinstance(shift, (tuple, list)) else -shift


@public
def fliplr(x: Any) -> Any:
    """x reversed along axis 1: left and right exchanged. A view."""
    return _flip_of_matrix(x, 1, "fliplr")


@public
def flipud(x: Any) -> Any:
    """x reversed along axis 0: up and down exchanged. A view."""
    return _flip_of_matrix(x, 0, "flipud")


def _flip_of_matrix(x: Any, axis: int, operation: str) -> Any:
    require_arrays(operation, x)
    single_axis(axis, x.shape, operation)
    return flip(x, axis)


@public
def rot90(x: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    """x turned `k` times by 90° in the plane of two axes, from the first towards the second. A view."""
    require_arrays("rot90", x)
    k = whole_number(k, "k", "rot90", least=None) % 4
    for a in axes:
        single_axis(a, x.shape, "rot90")
    if len(axes) != 2 or axes[0] % len(x.shape) == axes[1] % len(x.shape):
        raise ValueError(f"rot90: axes must be two different ones, got {tuple(axes)}")
    first, second = axes
    if k % 2 == 0:
        return flip(x, (first, second) if k else ())
    return swapaxes(flip(x, second), first, second) if k == 1 else flip(swapaxes(x, first, second), second)


@public
def unflatten(x: Any, axis: int, sizes: Sequence[int]) -> Any:
    """x with `axis` made several, of these sizes, one of which may be -1: the way back of `flatten`. A view."""
    require_arrays("unflatten", x)
    single_axis(axis, x.shape, "unflatten")
    axis, sizes = axis % len(x.shape), tuple(whole_number(n, "a size", "unflatten", least=-1) for n in sizes)
    known = math.prod([n for n in sizes if n != -1])
    if -1 in sizes and known and not x.shape[axis] % known:
        sizes = tuple(x.shape[axis] // known if n == -1 else n for n in sizes)
    if not sizes or -1 in sizes or math.prod(sizes) != x.shape[axis]:
        raise ValueError(f"unflatten: the sizes {sizes} must multiply to {x.shape[axis]}, the length of axis {axis} of "
                         f"shape {tuple(x.shape)}; one of them may be -1")
    return reshape(x, (*x.shape[:axis], *sizes, *x.shape[axis + 1:]))


# --------------------------------------------------------------------------- repeating


@primitive(fresh=True)
def repeat_each(x, times, axis):
    return xp(x).repeat(x, times, axis)


# forward: (…, n, …) → (…, n·times, …), the repeats of one element beside each other      so here: summed
repeat_each.gradient(x=lambda g, x_shape, times, axis:
                      sum_over(reshape(g, (*x_shape[:axis + 1], times, *x_shape[axis + 1:])), axis + 1))


@public
def repeat(x: Any, repeats: Any, axis: int | None = None) -> Any:
    """Each element repeated `repeats` times, ``[a, b] -> [a, a, b, b]``, along `axis` (flattened if it is None).

    This is NumPy's repeat, and PyTorch's `repeat_interleave`. PyTorch's Tensor.repeat, ``[a, b] -> [a, b, a, b]``, is
    `tile`.

    Args:
        repeats: an int, or one for each place along `axis`: a list, an array or a tensor (a GPU is waited for).
    """
    return _repeat(x, repeats, axis, "repeat")


@public
def repeat_interleave(x: Any, repeats: Any, axis: int | None = None) -> Any:
    """PyTorch's name for `repeat`: each element `repeats` times, along `axis`."""
    return _repeat(x, repeats, axis, "repeat_interleave")


def _repeat(x: Any, repeats: Any, axis: int | None, operation: str) -> Any:
    require_arrays(operation, x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    shape = tuple(x.shape)
    try:
        single_axis(axis, shape, operation)
    except (IndexError, TypeError) as error:
        raise type(error)(f"{error}; to repeat a whole tensor, tile") from None
    axis %= len(shape)
    counts = to_numpy(raw(repeats)) if is_array(raw(repeats)) else np.asarray(repeats)
    if counts.dtype.kind not in "iu" and counts.size:
        raise TypeError(f"{operation}: repeats must be integers, got {counts.dtype}")
    if counts.size and counts.min() < 0:
        raise ValueError(f"{operation}: repeats must not be negative, got {int(counts.min())}")
    if counts.size == 1 and counts.ndim <= 1:
        return repeat_each(x, int(counts.reshape(-1)[0]), axis)
    if counts.shape != (shape[axis],):
        raise ValueError(f"{operation}: repeats must be an int or one for each of the {shape[axis]} places of axis "
                         f"{axis}, got shape {counts.shape}; to repeat a whole tensor, tile")
    return take(x, np.repeat(np.arange(shape[axis]), counts.astype(np.int64)), axis)


@primitive
def _tile(x, reps):
    return xp(x).tile(x, reps)


def tile_gradient(g, x_shape, reps):
    # forward: along each axis `reps` copies of x, one after the other      so here: (reps, n) for each axis, summed
    shape = (1,) * (len(reps) - len(x_shape)) + x_shape
    apart = reshape(g, tuple(n for pair in zip(reps, shape, strict=True) for n in pair))
    return reshape(sum_over(apart, tuple(range(0, 2 * len(reps), 2))), x_shape)


_tile.gradient(x=tile_gradient)


@public
def tile(x: Any, reps: int | Sequence[int]) -> Any:
    """x laid out `reps` times along each axis, ``[a, b] -> [a, b, a, b]``: NumPy's tile, PyTorch's Tensor.repeat.

    The shorter of `reps` and the shape of x is filled up with ones in front.
    """
    require_arrays("tile", x)
    given = reps if isinstance(reps, list | tuple) else [reps]
    counts = tuple([whole_number(n, "a number of repeats", "tile", least=0) for n in given])
    return _tile(x, (1,) * (len(x.shape) - len(counts)) + counts)


@public
def meshgrid(*xs: Any, indexing: str = "xy") -> tuple[Any, ...]:
    """For each vector a tensor of its values at every point of the grid that they span. Views, as in PyTorch.

    Args:
        xs: of one dimension each, or numbers of none.
        indexing: with ``"ij"`` the i-th vector runs along axis i; with ``"xy"``, NumPy's default, the first two are
            exchanged: x along the columns, y along the rows.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    require_arrays("meshgrid", *xs)
    if any(len(x.shape) > 1 for x in xs):
        raise ValueError(f"meshgrid: the tensors must have one dimension, got {[tuple(x.shape) for x in xs]}")
    axes = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        axes[:2] = [1, 0]
    lengths = [x.shape[0] if len(x.shape) else 1 for x in xs]
    grid = tuple([lengths[axis] for axis in axes])  # exchanging two is its own inverse
    return tuple([broadcast_to(reshape(x, tuple([n if i == axis else 1 for i in range(len(xs))])), grid)
                  for x, n, axis in zip(xs, lengths, axes, strict=True)])
