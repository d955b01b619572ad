"""Checks of arguments that are no operands: sizes, counts and axes."""

from __future__ import annotations

from typing import Any

import numpy as np


def whole_number(value: Any, name: str, operation: str, least: int | None = 1) -> int:
    """`value` as an int; TypeError if it is no integer, ValueError if it is below `least`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{operation}: {name} must be an integer, got {type(value).__name__} {value!r}")
    if least is not None and value < least:
        raise ValueError(f"{operation}: {name} must be at least {least}, got {value}")
    return int(value)


def single_axis(axis: Any, shape: tuple[int, ...], operation: str) -> None:
    """TypeError for an axis that is no int, IndexError for one that an array of `shape` lacks."""
    if not isinstance(axis, int | np.integer):
        raise TypeError(f"{operation}: the axis must be one int, got {type(axis).__name__} {axis!r}")
    if not -len(shape) <= axis < len(shape):
        raise IndexError(f"{operation}: axis {axis} is out of range for shape {tuple(shape)}")
