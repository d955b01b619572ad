"""Arguments that are sizes: of a kernel, of a layer, of a step."""

from __future__ import annotations

from typing import Any

import numpy as np


def whole_number(value: Any, name: str, operation: str, least: int = 1) -> int:
    """`value` as an int; TypeError if it is no integer, ValueError if it is below `least`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{operation}: {name} must be an integer, got {type(value).__name__} {value!r}")
    if value < least:
        raise ValueError(f"{operation}: {name} must be at least {least}, got {value}")
    return int(value)
