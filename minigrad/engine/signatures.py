"""The names of a function's parameters, read from its code: `inspect.signature` takes its time at import."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

_OTHER_KINDS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def is_ordinary(function: Callable[..., Any]) -> bool:
    """Whether it is a Python function whose parameters can all be given by position."""
    if not isinstance(function, types.FunctionType) or hasattr(function, "__wrapped__"):
        return False
    code = function.__code__
    return not code.co_kwonlyargcount and not code.co_flags & _OTHER_KINDS


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters of any callable whose signature Python can tell, in order."""
    if is_ordinary(function):
        code = function.__code__
        return list(code.co_varnames[:code.co_argcount])
    return list(inspect.signature(function).parameters)
