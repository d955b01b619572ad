"""Errors that name the operation that was called and the operands that it was given."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from minigrad.device import is_array
from minigrad.engine.node import TensorBase

CAUGHT = (IndexError, ValueError, TypeError, AttributeError, OverflowError)  # of NumPy, where arguments do not fit


def explain(error: Exception, values: Iterable[Any], operation: str, names: Sequence[str] = ()) -> Exception:
    """The same kind of error: its message between the operation's name and the operands, by their `names` if given.

    An AttributeError is a TypeError where something is no array: it has no ``shape``, for example.
    """
    values, message, kind = list(values), str(error), kind_of(error)
    if kind is AttributeError and not all(isinstance(v, TensorBase) or is_array(v) for v in values):
        message, kind = "the operands must be tensors or arrays", TypeError
    if message.startswith(f"{operation}: "):
        return kind(message)
    named = itertools.zip_longest(names, values, fillvalue="")
    operands = "; ".join(f"{name}: {shown(value)}" if name else shown(value) for name, value in named)
    return kind(f"{operation}: {message} [operands: {operands}]")


def misfit(error: TypeError, operation: str, signature: inspect.Signature) -> TypeError:
    """The error for arguments that a function does not have, with its signature."""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    problem = re.sub(r"^[\w.]+\(\) ", "", str(error))
    return TypeError(f"{operation}{inspect.Signature(bare)}: {problem}")


def kind_of(error: Exception) -> type[Exception]:
    """The class in `CAUGHT` that the error belongs to."""
    return next(kind for kind in CAUGHT if isinstance(error, kind))


def shown(value: Any) -> str:
    """A value in an error: a tensor or an array by shape and dtype, anything else as Python writes it, cut short."""
    array = value._data if isinstance(value, TensorBase) else value
    if is_array(array):
        return f"{tuple(array.shape)} {array.dtype}"
    if isinstance(value, (list, tuple)) and any(isinstance(v, TensorBase) or is_array(v) for v in value):
        return f"[{', '.join(map(shown, value[:3]))}{', …' if len(value) > 3 else ''}]"
    return " ".join(repr(value).split())[:40]
