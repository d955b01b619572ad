"""Arguments of the functions that people call: numbers and dtypes, checked and converted."""

from __future__ import annotations

import math
import numbers
import sys
from typing import Any

import numpy as np

from minigrad.device import asarray_on, is_array, plain, to_numpy
from minigrad.device.local import recording
from minigrad.engine.errors import shown
from minigrad.engine.node import Array, TensorBase
from minigrad.engine.operands import NUMERIC, numeric

LARGEST = sys.float_info.max  # the largest finite number


def whole_number(value: Any, name: str, operation: str, least: int | None = 1) -> int:
    """`value` as an int; TypeError if it is no integer, ValueError if it is below `least` or beyond 64 bits."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool | np.timedelta64):
        raise TypeError(f"{operation}: {name} must be an integer, got {type(value).__name__} {shown(value)}")
    if least is not None and value < least:
        raise ValueError(f"{operation}: {name} must be at least {least}, got {value}")
    if abs(int(value)) > sys.maxsize:
        raise ValueError(f"{operation}: {name} must be at most {sys.maxsize}, got {value}")
    return int(value)


def number(value: Any, name: str, operation: str, least: float = -math.inf, most: float = math.inf) -> float:
    """`value` as a Python number, also of an array or a tensor that holds one and requires no gradient.

    TypeError if it is no real number, ValueError unless it is from `least` to `most`.
    """
    if getattr(value, "shape", None) == () and not getattr(value, "requires_grad", False):
        value = numeric(value, f"{operation}: {name}").item()
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{operation}: {name} must be a number, got {type(value).__name__} {shown(value)}")
    value = value if isinstance(value, int) else float(value)
    if not least <= value <= most:  # nor is NaN
        bound = "a number" if value != value else f"at most {most}" if value > most else f"at least {least}"
        raise ValueError(f"{operation}: {name} must be {bound}, got {shown(value)}")
    return value


def numeric_dtype(dtype: Any, operation: str) -> np.dtype[Any]:
    """The dtype that is meant; TypeError for None, for what is no dtype, and for one that tensors do not have."""
    found = None if dtype is None else np.dtype(dtype)
    if found is None or found.kind not in NUMERIC:
        raise TypeError(f"{operation}: dtype must be boolean, integer or floating, got {found}")
    return found


def numbers_on(device: str, values: Any, dtype: Any, operation: str) -> Array:
    """An array, numbers or nested lists of them as an array of `dtype` on a device.

    TypeError for anything else, and for a tensor that requires a gradient, which would be lost; OverflowError for an
    integer that the dtype cannot hold.
    """
    values = listed(values, operation)
    if is_array(values):
        return asarray_on(device, numeric(values, operation), dtype)
    if np.size(values):
        numeric(np.asarray(values), operation)
    return asarray_on(device, values.item() if isinstance(values, np.generic) else values, dtype)


def listed(data: Any, operation: str, inside: bool = False) -> Any:
    """Arrays and tensors, alone or in nested lists with numbers, as plain arrays; those in lists are in host memory."""
    if isinstance(data, TensorBase):
        if data._requires_grad and recording.get():
            raise TypeError(f"{operation}: a tensor that requires a gradient would become a constant; join several by "
                            "minigrad.stack, repeat one by minigrad.broadcast_to, or give .detach() for a constant")
        return to_numpy(data._data) if inside else data._data
    if isinstance(data, (list, tuple)):
        return [listed(part, operation, True) for part in data]
    return plain(data, operation) if isinstance(data, np.ndarray) else data
