"""What a function makes of a call: other spellings of its arguments, and errors that name it and what it was given.

`public` decorates the functions that are made of several operations; `minigrad.engine.primitive` does the same for one.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from minigrad.device import is_array
from minigrad.engine.node import TensorBase
from minigrad.engine.signatures import parameter_names

F = TypeVar("F", bound=Callable[..., Any])
# PyTorch's spelling of an argument -> NumPy's, which is ours, and means the same
TORCH_NAMES = {"dim": "axis", "keepdim": "keepdims", "start_dim": "start_axis", "end_dim": "end_axis"}
# Arguments that are not understood -> what takes their place here: the first of these that the function has
OURS = {
    "p": ("ord",),
    "dims": ("axes", "reps", "axis"),
    "shifts": ("shift",),
    "diagonal": ("k",),
    "dim0": ("axis1",),
    "dim1": ("axis1",),
    "dim2": ("axis2",),
    "split_size_or_sections": ("sizes",),
    "indices_or_sections": ("sizes",),
    "size": ("shape",),
    "pad_width": ("widths",),
    "a_min": ("min",),
    "a_max": ("max",),
    "ddof": ("correction",),
    "unbiased": ("correction",),
}
REMEDIES = {
    "unbiased": "unbiased=True is correction=1 here, and the default is 0",
    "dtype": "convert with .astype(dtype)",
    "out": "every operation makes a new tensor (and for numpy.f(x) write x.f() or minigrad.f(x))",
    "inplace": "every operation makes a new tensor",
    "device_type": "the device is that of the tensors",
}
# Functions to which PyTorch lets one give more arguments in a row
IN_A_ROW = {
    "repeat": "PyTorch's repeat, of a whole tensor, is tile here, with all counts as one argument: tile((2, 1))",
    "tile": "reps are one argument: tile((2, 1))",
    "flip": "several axes are one argument: flip((0, 1))",
}
CAUGHT = (ValueError, TypeError, IndexError, AttributeError)  # what NumPy and Python say of arguments that do not fit


def in_our_names(keywords: dict[str, Any], parameters: Collection[str], operation: str) -> dict[str, Any]:
    """The keyword arguments, with ``dim`` and ``keepdim`` for the `parameters` ``axis`` and ``keepdims`` so named."""
    renamed = {}
    for name, value in keywords.items():
        ours = TORCH_NAMES.get(name, name)
        if ours in parameters and name not in parameters:
            if ours in keywords:
                raise TypeError(f"{operation}: {name} is another name for {ours}; give one of them")
            name = ours
        renamed[name] = value
    return renamed


def public(function: F) -> F:
    """Let a function understand ``dim`` and ``keepdim`` for ``axis`` and ``keepdims``, and let its errors name it.

    What was raised by an operation inside, or by Python or NumPy, is raised again with this function's name for the
    operation's, and with what it was given. What names it already stays as it is.
    """
    parameters = frozenset(parameter_names(function))
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if keywords and not TORCH_NAMES.keys().isdisjoint(keywords):
            keywords = in_our_names(keywords, parameters, name)
        try:
            return function(*args, **keywords)
        except CAUGHT as error:
            entered = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if isinstance(error, TypeError) and not entered:
                raise unfit(error, name, inspect.signature(function), keywords) from None
            told = in_name_of(name, error, (*args, *keywords.values()))
            if told is error:
                raise
            raise told from error

    return call  # type: ignore[return-value]


def unfit(error: TypeError, operation: str, signature: inspect.Signature, keywords: Iterable[str]) -> TypeError:
    """The error for arguments that a function does not have, with its signature and what they are called here."""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    shown = inspect.Signature(bare)
    text = re.sub(r"^[\w.]+\(\) ", "", str(error))
    advice = "".join(f"; {told}" for told in (_advice(name, signature.parameters) for name in keywords) if told)
    if "positional argument" in text and operation in IN_A_ROW:
        advice += f"; {IN_A_ROW[operation]}"
    return TypeError(f"{operation}{shown}: {text}{advice}")


def _advice(name: str, parameters: Collection[str]) -> str:
    """What to give in place of the argument `name`, which a function with these parameters lacks; "" if unknown."""
    if name in parameters:
        return ""
    ours = next((ours for ours in OURS.get(name, ()) if ours in parameters), None)
    if ours is None and name in OURS:
        return ""
    return REMEDIES.get(name, f"{name} is called {ours} here" if ours else "")


def in_name_of(operation: str, error: Exception, values: Iterable[Any]) -> Exception:
    """The error as one of `operation`, called with `values`: itself if it says so already."""
    message = str(error)
    if re.match(rf"{operation}\b", message):
        return error
    inner = re.match(r"\w+(\([^()]*\))?: ", message)
    if inner is None or isinstance(error, AttributeError):
        return explain(error, values, operation)
    return _kind(error)(f"{operation}: {message[inner.end():]}")


def explain(error: Exception, values: Iterable[Any], operation: str) -> Exception:
    """The same kind of error, its message naming the operation and the operands.

    An AttributeError is a TypeError where something is no array: it has no ``shape``, for example.
    """
    values, message = list(values), str(error)
    if message.startswith(f"{operation}: "):
        return _kind(error)(message)
    operands = f"[operands: {'; '.join(map(shown, values))}]"
    if isinstance(error, AttributeError) and not all(isinstance(v, TensorBase) or is_array(v) for v in values):
        return TypeError(f"{operation}: the operands must be tensors or arrays {operands}")
    return _kind(error)(f"{operation}: {message} {operands}")


def _kind(error: Exception) -> type[Exception]:
    return next(kind for kind in (IndexError, *CAUGHT) if isinstance(error, kind))


def shown(value: Any) -> str:
    """A value in an error: a tensor or an array by shape and dtype, anything else as Python writes it, cut short."""
    array = value._data if isinstance(value, TensorBase) else value
    if is_array(array):
        return f"{tuple(array.shape)} {array.dtype}"
    if isinstance(value, (list, tuple)) and any(isinstance(v, TensorBase) or is_array(v) for v in value):
        return f"[{', '.join(map(shown, value[:3]))}{', …' if len(value) > 3 else ''}]"
    return " ".join(repr(value).split())[:40]
