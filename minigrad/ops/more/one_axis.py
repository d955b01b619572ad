"""What a function along one axis makes of None for it, and of a number, which has no axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.arguments import single_axis
from minigrad.ops.shape import require_arrays, reshape


def along_one_axis(function: Callable[..., Any], x: Any, axis: int | None, operation: str, *more: Any) -> Any:
    """``function(x, axis, *more)``; of the flattened x if `axis` is None.

    A number is one element along axis 0 or -1, as in PyTorch, and what `function` makes of it, an array of one element
    or a tuple of such, is a number again.

    Raises TypeError for an x that is no array and an axis that is no int, IndexError for one that x lacks.
    """
    require_arrays(operation, x)
    if axis is None:
        return function(reshape(x, (-1,)), 0, *more)
    single_axis(axis, tuple(x.shape) or (1,), operation)
    if len(x.shape):
        return function(x, axis, *more)
    found = function(reshape(x, (1,)), 0, *more)
    return tuple(map(_as_number, found)) if isinstance(found, tuple) else _as_number(found)


def _as_number(x: Any) -> Any:
    return reshape(x, ()) if x.shape == (1,) else x  # topk of none is empty
