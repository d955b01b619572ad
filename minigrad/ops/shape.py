"""Operations that move elements about. Each is linear, and its rule is its transpose: the way back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minigrad import device as devices
from minigrad.device import xp
from minigrad.operands import torch_names
from minigrad.primitive import primitive
from minigrad.rules import sum_to
from minigrad.tape import TensorBase


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


@torch_names
def expand_dims(x: Any, axis: int) -> Any:
    """x with an axis of length 1 put in at `axis`. A view."""
    shape = x.shape
    if not -len(shape) - 1 <= axis <= len(shape):
        raise IndexError(f"expand_dims: axis {axis} is out of range for the result's {len(shape) + 1} dimensions")
    axis %= len(shape) + 1
    return reshape(x, (*shape[:axis], 1, *shape[axis:]))


@torch_names
def squeeze(x: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """x without its axes of length 1 (or without those in `axis`, which must have length 1). A view."""
    shape = x.shape
    if axis is None:
        return reshape(x, tuple(n for n in shape if n != 1))
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if not -len(shape) <= a < len(shape):
            raise IndexError(f"squeeze: axis {a} is out of range for shape {tuple(shape)}")
        if shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} has length {shape[a]}, not 1, in shape {tuple(shape)}")
    dropped = {a % len(shape) for a in axes}
    return reshape(x, tuple(n for i, n in enumerate(shape) if i not in dropped))


@primitive
def _concatenate(*xs, axis):
    return xp(xs[0]).concatenate(xs, axis=axis)


@_concatenate.joint_gradient("xs")
def concatenate_gradient(g, xs_shapes, axis, needs):
    # forward: the arrays stand one after the other along `axis`; so here: each gets the slice where it stands.
    before = (slice(None),) * (axis % len(xs_shapes[0]))
    gradients, start = [], 0
    for shape, needed in zip(xs_shapes, needs, strict=True):
        stop = start + shape[axis]
        gradients.append(g[(*before, slice(start, stop))] if needed else None)
        start = stop
    return gradients


@torch_names
def concatenate(tensors: Sequence[Any], axis: int = 0) -> Any:
    """The tensors (or arrays) joined along an existing axis, ``concatenate([a, b], axis=1)``; the other axes agree."""
    return _concatenate(*sequence_of_arrays(tensors, "concatenate"), axis=axis)


@torch_names
def stack(tensors: Sequence[Any], axis: int = 0) -> Any:
    """The tensors (or arrays), all of one shape, joined along a new axis."""
    tensors = sequence_of_arrays(tensors, "stack")
    shapes = {tuple(t.shape) for t in tensors}
    if len(shapes) > 1:
        raise ValueError(f"stack: the tensors must have one shape, got {sorted(shapes)}")
    return _concatenate(*[expand_dims(t, axis) for t in tensors], axis=axis)


def sequence_of_arrays(tensors: Any, operation: str) -> list[Any]:
    """The tensors or arrays as a list; TypeError for anything else, ValueError if there are none."""
    if isinstance(tensors, TensorBase) or not isinstance(tensors, Iterable):
        raise TypeError(f"{operation}: give the tensors as one sequence, {operation}([a, b, …]), "
                        f"not a {type(tensors).__name__}")
    found = list(tensors)
    if not found:
        raise ValueError(f"{operation}: needs at least one tensor")
    require_arrays(operation, *found)
    return found


def require_arrays(operation: str, *operands: Any) -> None:
    """TypeError unless every operand is a tensor or an array."""
    for x in operands:
        if not isinstance(x, TensorBase) and not hasattr(x, "dtype"):
            raise TypeError(f"{operation}: the operands must be tensors or arrays, got a {type(x).__name__}")


@torch_names
def split(x: Any, sizes: int | Sequence[int], axis: int = 0) -> tuple[Any, ...]:
    """x cut along `axis` into pieces of the given size (the last may be smaller), or of the given sizes. Views."""
    if not -len(x.shape) <= axis < len(x.shape):
        raise IndexError(f"split: axis {axis} is out of range for shape {tuple(x.shape)}")
    length = x.shape[axis]
    if isinstance(sizes, (int, np.integer)):
        if sizes < 1:
            raise ValueError(f"split: the size of a piece must be at least 1, got {sizes}")
        sizes = [min(sizes, length - start) for start in range(0, length, sizes)]
    if any(size < 0 for size in sizes) or sum(sizes) != length:
        raise ValueError(f"split: the sizes {list(sizes)} must add up to {length}, the length of axis {axis}")
    before, pieces, start = (slice(None),) * (axis % len(x.shape)), [], 0
    for size in sizes:
        pieces.append(x[(*before, slice(start, start + size))])
        start += size
    return tuple(pieces)


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


def _require_matrices(x: Any, operation: str) -> None:
    if x.ndim < 2:
        raise ValueError(f"{operation}: needs at least two dimensions, got shape {tuple(x.shape)}")


@primitive
def tril(x, k=0):
    """x with everything above the k-th diagonal of its last two axes set to 0."""
    _require_matrices(x, "tril")
    return xp(x).tril(x, k)


tril.gradient(x=lambda g, k: tril(g, k))


@primitive
def triu(x, k=0):
    """x with everything below the k-th diagonal of its last two axes set to 0."""
    _require_matrices(x, "triu")
    return xp(x).triu(x, k)


triu.gradient(x=lambda g, k: triu(g, k))


@primitive
def to_device(x, device):
    """x on another device ("cpu", "cuda", "cuda:1"); the gradient travels back."""
    return devices.to_device(x, device)


to_device.gradient(x=lambda g, x_device: to_device(g, x_device))
