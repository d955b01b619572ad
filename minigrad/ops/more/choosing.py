"""Choosing between several values by the first condition that holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad.arguments import public
from minigrad.engine.node import TensorBase
from minigrad.ops.selection import where


@public
def select(conditions: Sequence[Any], choices: Sequence[Any], default: Any = 0) -> Any:
    """Of the `choices` the one whose condition holds first, else `default`: NumPy's select. All broadcast.

    (PyTorch's select, of one index along an axis, is the method ``x.select(axis, index)``.)

    Args:
        conditions: boolean tensors or arrays, as `where` takes them.
        choices: as many; tensors, arrays or numbers.
    """
    if isinstance(conditions, TensorBase) or hasattr(conditions, "dtype"):
        raise TypeError("select: give the conditions as a list, select([x < 0, x > 1], [0, 1], x); one index along an "
                        "axis is x.select(axis, index)")
    conditions, choices = list(conditions), list(choices)
    if not conditions or len(conditions) != len(choices):
        raise ValueError(f"select: needs a choice for each condition, got {len(conditions)} conditions and "
                         f"{len(choices)} choices")
    chosen = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        chosen = where(condition, choice, chosen)
    return chosen
