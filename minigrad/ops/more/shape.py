"""The rarer ways to move elements about, and to repeat them. Each is linear, and its rule is its transpose.

What was repeated gets the sum of its repeats' gradients.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.arguments import public, single_axis, whole_number
from minigrad.device import is_array, to_numpy, xp
from minigrad.device.sums import sum_over
from minigrad.engine.primitive import primitive
from minigrad.ops.indexing import raw, take
from minigrad.ops.shape import require_arrays, reshape, transpose


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

    This is NumPy's repeat, and PyTorch's repeat_interleave. PyTorch's Tensor.repeat, ``[a, b] -> [a, b, a, b]``, is
    `tile`.

    Args:
        repeats: an int, or one for each place along `axis`: a list, an array or a tensor (a GPU is waited for).
    """
    require_arrays("repeat", x)
    if axis is None or not len(x.shape):
        x, axis = reshape(x, (-1,)), axis or 0
    shape = tuple(x.shape)
    single_axis(axis, shape, "repeat")
    axis %= len(shape)
    counts = to_numpy(raw(repeats)) if is_array(raw(repeats)) else np.asarray(repeats)
    if counts.dtype.kind not in "iu" and counts.size:
        raise TypeError(f"repeat: repeats must be integers, got {counts.dtype}")
    if counts.size and counts.min() < 0:
        raise ValueError(f"repeat: repeats must not be negative, got {int(counts.min())}")
    if counts.size == 1 and counts.ndim <= 1:
        return repeat_each(x, int(counts.reshape(-1)[0]), axis)
    if counts.shape != (shape[axis],):
        raise ValueError(f"repeat: repeats must be an int or one for each of the {shape[axis]} places of axis "
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
