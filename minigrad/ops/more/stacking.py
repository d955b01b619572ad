"""Joins of rows, and side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad.arguments import public
from minigrad.ops.shape import concatenate, reshape, sequence_of_arrays


@public
def vstack(tensors: Sequence[Any]) -> Any:
    """The tensors (or arrays) as rows, one below the other: joined along the first axis, once they are at least 2-D."""
    tensors = sequence_of_arrays(tensors, "vstack")
    return concatenate([t if len(t.shape) > 1 else reshape(t, (1, -1)) for t in tensors], 0)


@public
def hstack(tensors: Sequence[Any]) -> Any:
    """The tensors (or arrays) side by side: joined along the second axis, 1-D ones along their only one."""
    tensors = [t if len(t.shape) else reshape(t, (1,)) for t in sequence_of_arrays(tensors, "hstack")]
    return concatenate(tensors, 0 if len(tensors[0].shape) == 1 else 1)
