"""How a faster body is registered, and how one says which operands it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.engine.primitive import Primitive
from minigrad.engine.rules import FasterBody

Function = Callable[..., Any]
JIT = "jit"  # the kind of the compiled bodies


def faster_body(primitive: Primitive, suits: Callable[..., bool], kind: str = "fast",
                fresh: bool = False) -> Callable[[Function], FasterBody]:
    """Decorate a forward that runs in place of the definition of `primitive`, where it suits.

    The name becomes a `FasterBody`, whose `gradient` and `joint_gradient` take its rules; what it does not bring is the
    definition's.

    Args:
        primitive: the operation; the decorated function has its parameters.
        suits: whether the body takes these arguments, which are raw arrays and plain values, in order. The first
            sentence of its docstring says it in words, for `minigrad.explain_path`.
        kind: "fast" for a body that runs wherever it suits, "jit" for one that runs where `minigrad.jit` is on.
        fresh: each gradient that a rule returns is memory of its own; see `minigrad.primitive`.
    """
    def register(forward: Function) -> FasterBody:
        body = FasterBody(primitive, forward, suits, kind, fresh)
        primitive.add_body(body)
        return body

    return register


def on_host(*operands: Any) -> bool:
    """Whether all are float32, or all float64, arrays in host memory; None stands for an operand that was left out."""
    dtype = None
    for x in operands:
        if x is not None:
            if type(x) is not np.ndarray or x.dtype.char not in "fd" or (dtype is not None and x.dtype != dtype):
                return False
            dtype = x.dtype
    return dtype is not None


def masks_on_host(*masks: Any) -> bool:
    """Whether all are arrays in host memory, or None."""
    return all(m is None or type(m) is np.ndarray for m in masks)
