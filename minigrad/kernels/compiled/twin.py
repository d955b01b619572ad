"""How a primitive gets its compiled twin: a primitive of the same name and parameters, whose bodies are kernels.

The twin is what is recorded, so its rules run in the backward, whatever the switch says then. Where a gradient is to be
differentiated again, the readable rules take over: those of the primitive that the twin stands for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.engine.node import TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.engine.signatures import parameter_names

Function = Callable[..., Any]


def twin_of(original: Primitive, suits: Callable[..., bool]) -> Callable[[Function], Primitive]:
    """Decorate the compiled forward of `original`, which has the same parameters.

    Args:
        original: what runs where the switch is off, for operands that do not suit, and at second order.
        suits: whether the compiled forward takes these operands. It is called with all of them in order; those with a
            gradient are host arrays of one floating dtype, numbers or None.
    """
    def register(forward: Function) -> Primitive:
        if parameter_names(forward) != list(original.parameters):
            raise TypeError(f"{original.name}: its twin must have the parameters {', '.join(original.parameters)}")
        twin = Primitive(forward, original.broadcasts, original.floating, composition=original)
        twin.name = original.name
        original.twin, original.suits = twin, suits
        return twin

    return register


def gradient_of(twin: Primitive, name: str) -> Callable[[Function], Function]:
    """Decorate the compiled rule of one input: it is given arrays; to tensors, the original's own rule applies."""
    readable = twin.composition._rules[name]  # type: ignore[union-attr]

    def register(rule: Function) -> Function:
        if parameter_names(rule) != parameter_names(readable):
            raise TypeError(f"{twin.name}: the rule of its twin for {name!r} must ask for what its own asks for")

        @functools.wraps(rule)
        def either(*values: Any) -> Any:
            return (readable if isinstance(values[0], TensorBase) else rule)(*values)

        twin.gradient(**{name: either})
        return rule

    return register


def is_floating(x: Any) -> bool:
    """Whether x is a float32 or float64 array in host memory, and not empty."""
    return type(x) is np.ndarray and x.dtype.char in "fd" and x.dtype.isnative and x.size > 0


def is_dense(x: Any) -> bool:
    """Whether x is that and C-contiguous: what kernels take."""
    return is_floating(x) and x.flags.c_contiguous and x.flags.aligned


def is_mask(x: Any, shape: tuple[int, ...]) -> bool:
    """Whether x is a boolean array of this shape in host memory, C-contiguous."""
    return type(x) is np.ndarray and x.dtype.kind == "b" and x.shape == shape and x.flags.c_contiguous


def dense(x: Any) -> Any:
    """A host array as it is if kernels take it, else a copy that they take."""
    return x if x.flags.c_contiguous and x.flags.aligned else x.copy("C")
