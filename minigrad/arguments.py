"""Arguments of the functions that people call: numbers and axes, checked, and errors that name the function.

`public` decorates the functions that are made of several operations; `minigrad.engine.primitive` does the same for one.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

import numpy as np

from minigrad.device import asarray_on, is_array
from minigrad.engine.errors import CAUGHT, explain, kind_of, misfit, shown
from minigrad.engine.node import Array
from minigrad.engine.operands import NUMERIC, numeric
from minigrad.engine.primitive import casting

LARGEST = sys.float_info.max  # the largest finite number

F = TypeVar("F", bound=Callable[..., Any])


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


def check_probability(p: Any, operation: str) -> float:
    """p as a Python number; ValueError unless ``0 <= p < 1``, TypeError if it is no number."""
    if type(p) is not float:
        p = number(p, "the probability of dropping", operation)
    if not 0 <= p < 1:
        raise ValueError(f"{operation}: the probability of dropping must be in [0, 1), got {p}")
    return p


def single_axis(axis: Any, shape: tuple[int, ...], operation: str) -> None:
    """TypeError for an axis that is no int, IndexError for one that an array of `shape` lacks."""
    if not isinstance(axis, int | np.integer) or isinstance(axis, np.timedelta64):
        raise TypeError(f"{operation}: the axis must be one int, got {type(axis).__name__} {shown(axis)}")
    if not -len(shape) <= axis < len(shape):
        raise IndexError(f"{operation}: axis {axis} is out of range for shape {tuple(shape)}")


def numeric_dtype(dtype: Any, operation: str) -> np.dtype[Any]:
    """The dtype that is meant; TypeError for None, for what is no dtype, and for one that tensors do not have."""
    found = None if dtype is None else np.dtype(dtype)
    if found is None or found.kind not in NUMERIC:
        raise TypeError(f"{operation}: dtype must be boolean, integer or floating, got {found}")
    return found


def numbers_on(device: str, values: Any, dtype: Any, operation: str) -> Array:
    """An array, numbers or nested lists of them as an array of `dtype` on a device.

    TypeError for anything else, OverflowError for an integer that the dtype cannot hold.
    """
    if is_array(values):
        return asarray_on(device, numeric(values, operation), dtype)
    if np.size(values):
        numeric(np.asarray(values), operation)
    try:
        return asarray_on(device, values.item() if isinstance(values, np.generic) else values, dtype)
    except OverflowError as error:
        raise OverflowError(f"{operation}: {error}") from None


def public(function: F) -> F:
    """Let the errors of a function name it.

    What was raised by an operation inside, or by Python or NumPy, is raised again with this function's name for the
    operation's, and with what it was given. What names it already stays as it is.
    """
    return _public(function, None)


def public_in_precision(precision: str) -> Callable[[F], F]:
    """The same for a function that wants a precision under mixed precision, which it declares as a primitive does."""
    return functools.partial(_public, precision=precision)


def _public(function: F, precision: str | None) -> F:
    name = function.__qualname__.rpartition(".")[2]

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if precision is not None and (cast := casting.get()) is not None:
            values = cast.arguments(call, [*args, *keywords.values()])
            args, keywords = values[:len(args)], dict(zip(keywords, values[len(args):], strict=True))
        try:
            return function(*args, **keywords)
        except CAUGHT as error:
            raise_in_name_of(function, name, error, args, keywords)

    call.precision = precision  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def raise_in_name_of(function: Callable[..., Any], name: str, error: Exception, args: tuple[Any, ...],
                     keywords: dict[str, Any]) -> NoReturn:
    """Raise `error`, which this call of `function` ended in, as one of the function `name`."""
    entered = error.__traceback__ is not None and error.__traceback__.tb_next is not None
    if isinstance(error, TypeError) and not entered:
        raise misfit(error, name, inspect.signature(function)) from None
    told = in_name_of(name, error, (*args, *keywords.values()))
    if told is error:
        raise error
    raise told from error


def in_name_of(operation: str, error: Exception, values: Iterable[Any]) -> Exception:
    """The error as one of `operation`, called with `values`: the error itself if it names the operation already."""
    message = str(error)
    if re.match(rf"{operation}\b", message):
        return error
    inner = re.match(r"\w+(\([^()]*\))?: ", message)
    if inner is None or isinstance(error, AttributeError):
        return explain(error, values, operation)
    return kind_of(error)(f"{operation}: {message[inner.end():]}")
