"""Errors that name the operation that was called and the operands that it was given."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from minigrad.device import is_array
from minigrad.engine.node import TensorBase

PLAINER = {  # what NumPy says -> the same in words that name no type of C, and the remedy
    "Python int too large to convert to C long": "an integer has more than 64 bits",
    "'list' object cannot be interpreted as an integer":
        "expected an int, or a tuple of ints where several axes are allowed, not a list",
    "axes don't match array": "needs all axes in their new order; swapaxes(0, 1) exchanges two",
}
CAUGHT = (ValueError, TypeError, IndexError, AttributeError, OverflowError)  # of NumPy, where arguments do not fit


def explain(error: Exception, values: Iterable[Any], operation: str, names: Sequence[str] = ()) -> Exception:
    """The same kind of error, its message naming the operation and the operands, by their `names` if there are some.

    An AttributeError is a TypeError where something is no array: it has no ``shape``, for example.
    """
    values, message = list(values), str(error)
    if message.startswith(f"{operation}: "):
        return kind_of(error)(message)
    named = itertools.zip_longest(names, values, fillvalue="")
    operands = f"[operands: {'; '.join(f'{name}: {shown(v)}' if name else shown(v) for name, v in named)}]"
    if isinstance(error, AttributeError) and not all(isinstance(v, TensorBase) or is_array(v) for v in values):
        return TypeError(f"{operation}: the operands must be tensors or arrays {operands}")
    for theirs, ours in PLAINER.items():
        message = message.replace(theirs, ours)
    return kind_of(error)(f"{operation}: {message} {operands}")


def misfit(error: TypeError, operation: str, signature: inspect.Signature) -> TypeError:
    """The error for arguments that a function does not have, with its signature."""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    problem = re.sub(r"^[\w.]+\(\) ", "", str(error))
    return TypeError(f"{operation}{inspect.Signature(bare)}: {problem}")


def kind_of(error: Exception) -> type[Exception]:
    """The one of `CAUGHT` that the error is."""
    return next(kind for kind in (IndexError, *CAUGHT) if isinstance(error, kind))


def shown(value: Any) -> str:
    """A value in an error: a tensor or an array by shape and dtype, anything else as Python writes it, cut short."""
    array = value._data if isinstance(value, TensorBase) else value
    if is_array(array):
        return f"{tuple(array.shape)} {array.dtype}"
    if isinstance(value, (list, tuple)) and any(isinstance(v, TensorBase) or is_array(v) for v in value):
        return f"[{', '.join(map(shown, value[:3]))}{', …' if len(value) > 3 else ''}]"
    return " ".join(repr(value).split())[:40]
