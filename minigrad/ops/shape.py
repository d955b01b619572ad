"""Operations that move elements about. Each is linear, and its rule is its transpose: the way back."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from minigrad import device as devices
from minigrad.arguments import public, single_axis, whole_number
from minigrad.device import xp
from minigrad.engine.node import TensorBase
from minigrad.engine.operands import sum_to
from minigrad.engine.primitive import primitive


@primitive
def reshape(x, shape):
    """x with another shape (a tuple; one entry may be -1); a view where possible."""
    return x.reshape(shape)


reshape.gradient(x=lambda g, x_shape: reshape(g, x_shape))


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
def broadcast_to(x, shape):
    """x repeated, without a copy, to `shape` by NumPy's rules."""
    return xp(x).broadcast_to(x, shape)


broadcast_to.gradient(x=lambda g, x_shape: sum_to(g, x_shape))


@public
def expand_dims(x: Any, axis: int) -> Any:
    """x with an axis of length 1 put in at `axis`. A view."""
    require_arrays("expand_dims", x)
    shape, axis = x.shape, whole_number(axis, "axis", "expand_dims", least=None)
    if not -len(shape) - 1 <= axis <= len(shape):
        raise IndexError(f"expand_dims: axis {axis} is out of range for the result's {len(shape) + 1} dimensions")
    axis %= len(shape) + 1
    return reshape(x, (*shape[:axis], 1, *shape[axis:]))


@public
def squeeze(x: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """x without its axes of length 1 (or without those in `axis`, which must have length 1). A view."""
    shape = x.shape
    if axis is None:
        return reshape(x, tuple(n for n in shape if n != 1))
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        single_axis(a, shape, "squeeze")
        if shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} has length {shape[a]}, not 1, in shape {tuple(shape)}")
    dropped = {a % len(shape) for a in axes}
    return reshape(x, tuple(n for i, n in enumerate(shape) if i not in dropped))


def require_arrays(operation: str, *operands: Any) -> None:
    """TypeError unless every operand is a tensor or an array."""
    for x in operands:
        if not isinstance(x, TensorBase) and not hasattr(x, "dtype"):
            raise TypeError(f"{operation}: the operands must be tensors or arrays, got a {type(x).__name__}")


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


@public
def ravel(x: Any) -> Any:
    """x in one dimension; a view where possible."""
    require_arrays("ravel", x)
    return reshape(x, (-1,))


@public
def flatten(x: Any, start_axis: int = 0, end_axis: int = -1) -> Any:
    """x with the axes from `start_axis` to `end_axis` made one, as in PyTorch; a view where possible."""
    require_arrays("flatten", x)
    shape = tuple(x.shape) or (1,)
    for a in (start_axis, end_axis):
        single_axis(a, shape, "flatten")
    start, stop = start_axis % len(shape), end_axis % len(shape) + 1
    if start >= stop:
        raise ValueError(f"flatten: start_axis {start_axis} comes after end_axis {end_axis}, for shape "
                         f"{tuple(x.shape)}")
    return reshape(x, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


@primitive
def pad(x, widths, value=0):
    """x with `value` put around it: `widths` has a pair (before, after) for each axis."""
    if len(widths) != x.ndim or any(len(pair) != 2 or min(pair) < 0 for pair in widths):
        raise ValueError(f"pad: widths must have a pair (before, after) for each of the {x.ndim} axes, none negative, "
                         f"got {widths}")
    return xp(x).pad(x, widths, mode="constant", constant_values=value)


pad.gradient(x=lambda g, x_shape, widths:
             g[tuple(slice(before, before + n) for (before, _), n in zip(widths, x_shape, strict=True))])


@primitive
def flip(x, axis=None):
    """x reversed along `axis` (all axes if None). A view."""
    return xp(x).flip(x, axis)


flip.gradient(x=lambda g, axis: flip(g, axis))


@primitive
def roll(x, shift, axis=None):
    """x with its elements moved on by `shift` along `axis`, those at the end to the start; flattened if it is None.

    `shift` and `axis` may be tuples, as in NumPy.
    """
    shift = tuple(map(operator.index, shift)) if isinstance(shift, (tuple, list)) else operator.index(shift)
    return xp(x).roll(x, shift, axis)


roll.gradient(x=lambda g, shift, axis: roll(g, _back(shift), axis))


def _back(shift: int | tuple[int, ...]) -> int | tuple[int, ...]:
    return tuple([-n for n in shift]) if isinstance(shift, (tuple, list)) else -shift


@primitive
def to_device(x, device):
    """x on another device ("cpu", "cuda", "cuda:1"); the gradient travels back."""
    return devices.to_device(x, device)


to_device.gradient(x=lambda g, x_device: to_device(g, x_device))
