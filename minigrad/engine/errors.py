"""Errors that name the operation that was called and the operands that it was given."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from minigrad.device import is_array
from minigrad.engine.node import TensorBase

CAUGHT = (IndexError, ValueError, TypeError, AttributeError, OverflowError)  # of NumPy, where arguments do not fit


def explain(error: Exception, values: Iterable[Any], operation: str, names: Sequence[str] = ()) -> NoReturn:
    """Raise the same kind of error, which names the operation and the operands, by their `names` if given.

    What names the operation already is raised as it is; the name of an operation inside gives way to that of a function
    that people call, one without `names`. An AttributeError is a TypeError where something is no array: it has no
    ``shape``, for example.
    """
    values, message, kind = list(values), str(error), next(kind for kind in CAUGHT if isinstance(error, kind))
    if re.match(rf"{operation}\b", message):
        raise error
    inner = None if names or kind is AttributeError else re.match(r"\w+(\([^()]*\))?: ", message)
    if inner is not None:
        raise kind(f"{operation}: {message[inner.end():]}") from error
    if kind is AttributeError and not all(isinstance(v, TensorBase) or is_array(v) for v in values):
        message, kind = "the operands must be tensors or arrays", TypeError
    named = itertools.zip_longest(names, values, fillvalue="")
    operands = "; ".join(f"{name}: {shown(value)}" if name else shown(value) for name, value in named)
    raise kind(f"{operation}: {message} [operands: {operands}]") from error


def refuse_arguments(operation: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise Python's TypeError for arguments that do not fit, with the operation's name and signature."""
    signature = inspect.signature(operation)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{operation.name}{signature}: {error}") from None


def shown(value: Any) -> str:
    """A value in an error: a tensor or an array by shape and dtype, anything else as Python writes it, cut short."""
    array = value._data if isinstance(value, TensorBase) else value
    if is_array(array):
        return f"{tuple(array.shape)} {array.dtype}"
    if isinstance(value, (list, tuple)) and any(isinstance(v, TensorBase) or is_array(v) for v in value):
        return f"[{', '.join(map(shown, value[:3]))}{', …' if len(value) > 3 else ''}]"
    return " ".join(repr(value).split())[:40]
