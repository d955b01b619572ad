"""Repeating: elements, whole tensors, and axes to a grid. What was repeated gets the sum of its repeats' gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.arguments import public, single_axis
from minigrad.device import is_array, to_numpy, xp
from minigrad.engine.primitive import primitive
from minigrad.ops.indexing import raw, take
from minigrad.ops.shape import broadcast_to, require_arrays, reshape


@primitive
def repeat_each(x, times, axis):
    return xp(x).repeat(x, times, axis)


# forward: (…, n, …) → (…, n·times, …), the repeats of one element beside each other      so here: summed
repeat_each.gradient(x=lambda g, x_shape, times, axis:
                      reshape(g, (*x_shape[:axis + 1], times, *x_shape[axis + 1:])).sum(axis=axis + 1))


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
    return reshape(apart.sum(axis=tuple(range(0, 2 * len(reps), 2))), x_shape)


_tile.gradient(x=tile_gradient)


@public
def tile(x: Any, reps: int | Sequence[int]) -> Any:
    """x laid out `reps` times along each axis, ``[a, b] -> [a, b, a, b]``: NumPy's tile, PyTorch's Tensor.repeat.

    The shorter of `reps` and the shape of x is filled up with ones in front.
    """
    require_arrays("tile", x)
    reps = tuple(reps) if isinstance(reps, Sequence) else (reps,)
    if not all(isinstance(n, (int, np.integer)) for n in reps):
        raise TypeError(f"tile: reps must be ints, got {reps}")
    if any(n < 0 for n in reps):
        raise ValueError(f"tile: reps must not be negative, got {reps}")
    return _tile(x, (1,) * (len(x.shape) - len(reps)) + reps)


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
