"""Dimensions of length 1 put where they are missing, and the joins that begin with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad.arguments import public
from minigrad.ops.shape import concatenate, require_arrays, reshape, sequence_of_arrays


@public
def atleast_1d(*tensors: Any) -> Any:
    """The tensor with at least one dimension: a number becomes (1,). Several `tensors` give a tuple. Views."""
    return _each(tensors, "atleast_1d", lambda shape: shape or (1,))


@public
def atleast_2d(*tensors: Any) -> Any:
    """The tensor with at least two dimensions: (n,) becomes (1, n). Several `tensors` give a tuple. Views."""
    return _each(tensors, "atleast_2d", lambda shape: (1,) * (2 - len(shape)) + shape)


@public
def atleast_3d(*tensors: Any) -> Any:
    """The tensor with at least three dimensions: (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1).

    Several `tensors` give a tuple. Views.
    """
    return _each(tensors, "atleast_3d", lambda shape: (*((1,) * (2 - len(shape)) + shape), 1)[:max(3, len(shape))])


def _each(tensors: tuple[Any, ...], operation: str, shaped: Any) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):  # PyTorch's form, one sequence
        return tuple(_each((t,), operation, shaped) for t in tensors[0])
    require_arrays(operation, *tensors)
    several = tuple([reshape(t, shaped(tuple(t.shape))) for t in tensors])
    return several[0] if len(several) == 1 else several


@public
def vstack(tensors: Sequence[Any]) -> Any:
    """The tensors (or arrays) as rows, one below the other: joined along the first axis, once they are at least 2-D."""
    return concatenate([atleast_2d(t) for t in sequence_of_arrays(tensors, "vstack")], 0)


@public
def hstack(tensors: Sequence[Any]) -> Any:
    """The tensors (or arrays) side by side: joined along the second axis, 1-D ones along their only one."""
    tensors = [atleast_1d(t) for t in sequence_of_arrays(tensors, "hstack")]
    return concatenate(tensors, 0 if len(tensors[0].shape) == 1 else 1)


@public
def dstack(tensors: Sequence[Any]) -> Any:
    """The tensors (or arrays) one behind the other: joined along the third axis, once they are at least 3-D."""
    return concatenate([atleast_3d(t) for t in sequence_of_arrays(tensors, "dstack")], 2)


@public
def column_stack(tensors: Sequence[Any]) -> Any:
    """The tensors (or arrays) as columns: joined along the second axis, (n,) as (n, 1)."""
    tensors = sequence_of_arrays(tensors, "column_stack")
    return concatenate([t if len(t.shape) > 1 else reshape(t, (-1, 1)) for t in tensors], 1)
