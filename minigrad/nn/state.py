"""Whether a saved state fits a module: everything is compared before anything changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from minigrad.device import is_array, plain, to_numpy
from minigrad.tensor import Tensor


class Keys(NamedTuple):
    """The names that a module and a saved state do not share."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def match_state(
    own: Mapping[str, Tensor], given: Mapping[str, Any], strict: bool, operation: str
) -> tuple[Keys, dict[str, Any]]:
    """The names not shared, and the arrays of `given` for the tensors of `own` that it has.

    Args:
        own: the tensors to load into, by name; a tied tensor appears under several names.
        given: tensors or arrays by name.
        strict: whether a name that is not shared is an error.
        operation: named in messages.

    Raises:
        TypeError: no mapping, or a value in it that is neither a tensor nor an array.
        ValueError: names (if `strict`), shapes or dtypes differ, or the values for the names of one tied
            tensor do; the message lists every problem.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{operation}: a state, tensors by name, expected, got {type(given).__name__}; "
                        "minigrad.checkpoint.load_tensors(path)[0] reads one from a file")
    keys = Keys([name for name in own if name not in given], [name for name in given if name not in own])
    problems = [f"{kind.partition('_')[0]}: {', '.join(names)}"
                for kind, names in keys._asdict().items() if names and strict]
    arrays: dict[str, Any] = {}
    first: dict[int, str] = {}  # the name of a tied tensor that comes first
    for name, tensor in own.items():
        if name not in given:
            continue
        value = given[name]
        array = arrays[name] = value.data if isinstance(value, Tensor) else plain(value, f"{operation}: {name}")
        if not is_array(array):
            kind = type(value)
            raise TypeError(f"{operation}: {name} must be a Tensor of minigrad or an array, got a {kind.__module__}."
                            f"{kind.__name__}; transformer.interop.load_pytorch takes tensors of PyTorch")
        tied = first.setdefault(id(tensor), name)
        for what in ("shape", "dtype"):
            if getattr(array, what) != getattr(tensor, what):
                problems.append(f"{name}: {what} {getattr(array, what)} given, {getattr(tensor, what)} needed")
        if not same_values(arrays[tied], array):
            problems.append(f"{name}: differs from {tied}, with which it is tied here")
    if problems:
        raise ValueError(f"{operation}: nothing was changed, because of\n  " + "\n  ".join(problems))
    return keys, arrays


def same_values(a: Any, b: Any) -> bool:
    """Whether two arrays hold the same values, wherever they are; NaN equals NaN."""
    return a is b or np.array_equal(to_numpy(a), to_numpy(b), equal_nan=True)
