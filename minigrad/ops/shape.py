"""Operations that move elements about. Each is linear, and its rule is its transpose: the way back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from minigrad import device as devices
from minigrad.arguments import public, single_axis, whole_number
from minigrad.device import plain, xp
from minigrad.engine.node import TensorBase
from minigrad.engine.operands import sum_to
from minigrad.engine.primitive import primitive


@primitive
def reshape(x, shape):
    """x with another shape (a tuple; one entry may be -1); a view where possible."""
    return x.reshape(shape)


reshape.gradient(x=lambda g, x_shape: reshape(g, x_shape))


def rows(x: Any) -> Any:
    """``(…, D) → (N, D)``."""
    shape = x.shape
    return x if len(shape) == 2 else x.reshape((math.prod(shape[:-1]), shape[-1]))


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
    shape = x.shape or (1,)  # a number has axis 0, as in NumPy
    if axis is None:
        return reshape(x, tuple(n for n in shape if n != 1))
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        single_axis(a, shape, "squeeze")
        if shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} has length {shape[a]}, not 1, in shape {tuple(shape)}")
    dropped = {a % len(shape) for a in axes}
    if len(dropped) < len(axes):
        raise ValueError(f"squeeze: {axis} names an axis twice")
    return reshape(x, tuple(n for i, n in enumerate(shape) if i not in dropped))


def require_arrays(operation: str, *operands: Any) -> None:
    """TypeError unless every operand is a tensor or an array."""
    for x in operands:
        if not isinstance(x, TensorBase) and not hasattr(x, "dtype"):
            raise TypeError(f"{operation}: the operands must be tensors or arrays, got a {type(x).__name__}")


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


# --------------------------------------------------------------------------- joining, and cutting into pieces


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


@public
def concatenate(tensors: Sequence[Any], axis: int | None = 0) -> Any:
    """The tensors (or arrays) joined along an existing axis, ``concatenate([a, b], axis=1)``; the other axes agree.

    With None for the axis they are flattened first, as in NumPy.
    """
    tensors = sequence_of_arrays(tensors, "concatenate")
    if axis is None:
        tensors, axis = [reshape(t, (-1,)) for t in tensors], 0
    single_axis(axis, tensors[0].shape, "concatenate")
    return _concatenate(*tensors, axis=axis)


@public
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
    found = [plain(x, operation) for x in tensors]
    if not found:
        raise ValueError(f"{operation}: needs at least one tensor")
    require_arrays(operation, *found)
    return found


@public
def split(x: Any, sizes: int | Sequence[int], axis: int = 0) -> tuple[Any, ...]:
    """x cut along `axis` into pieces of the given size (the last may be smaller), or of the given sizes. Views."""
    single_axis(axis, x.shape, "split")
    length = x.shape[axis]
    if not isinstance(sizes, Iterable) or isinstance(sizes, str):
        sizes = whole_number(sizes, "the size of a piece", "split")
        sizes = [min(sizes, length - start) for start in range(0, length, sizes)]
    sizes = [whole_number(size, "a size", "split", least=None) for size in sizes]
    if any(size < 0 for size in sizes) or sum(sizes) != length:
        raise ValueError(f"split: the sizes {list(sizes)} must add up to {length}, the length of axis {axis}")
    before, pieces, start = (slice(None),) * (axis % len(x.shape)), [], 0
    for size in sizes:
        pieces.append(x[(*before, slice(start, start + size))])
        start += size
    return tuple(pieces)


@public
def chunk(x: Any, chunks: int, axis: int = 0) -> tuple[Any, ...]:
    """x cut along `axis` into `chunks` pieces, the last smaller or missing if it must be, as in PyTorch. Views."""
    single_axis(axis, x.shape, "chunk")
    chunks = whole_number(chunks, "chunks", "chunk")
    size = -(-x.shape[axis] // chunks)
    return split(x, size if size else [0] * chunks, axis)


@public
def unbind(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The slices of x along `axis`, each without it. Views."""
    single_axis(axis, x.shape, "unbind")
    before = (slice(None),) * (axis % len(x.shape))
    return tuple([x[(*before, i)] for i in range(x.shape[axis])])


# --------------------------------------------------------------------------- another device


@primitive
def to_device(x, device):
    """x on another device ("cpu", "cuda", "cuda:1"); the gradient travels back."""
    return devices.to_device(x, device)


to_device.gradient(x=lambda g, x_device: to_device(g, x_device))
