"""Joining tensors, and cutting one into pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from minigrad.arguments import public, single_axis, whole_number
from minigrad.device import xp
from minigrad.engine.node import TensorBase
from minigrad.engine.primitive import primitive
from minigrad.ops.shape import expand_dims, require_arrays, reshape


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
    found = list(tensors)
    if not found:
        raise ValueError(f"{operation}: needs at least one tensor")
    require_arrays(operation, *found)
    return found


@public
def vstack(tensors: Sequence[Any]) -> Any:
    """The tensors (or arrays) as rows, one below the other: joined along the first axis, once they are at least 2-D."""
    tensors = sequence_of_arrays(tensors, "vstack")
    return concatenate([reshape(t, (1, -1)) if len(t.shape) < 2 else t for t in tensors], 0)


@public
def hstack(tensors: Sequence[Any]) -> Any:
    """The tensors (or arrays) side by side: joined along the second axis, 1-D ones along their only one."""
    tensors = [reshape(t, (1,)) if not len(t.shape) else t for t in sequence_of_arrays(tensors, "hstack")]
    return concatenate(tensors, 0 if len(tensors[0].shape) == 1 else 1)


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
