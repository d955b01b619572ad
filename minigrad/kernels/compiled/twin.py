"""How a primitive gets its compiled body, and what kernels take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.engine.primitive import Primitive
from minigrad.engine.rules import FasterBody
from minigrad.kernels import JIT

Function = Callable[..., Any]


def compiled_body(primitive: Primitive, suits: Callable[..., bool]) -> Callable[[Function], FasterBody]:
    """Decorate the compiled forward of `primitive`, which has the same parameters.

    Args:
        primitive: the operation. Its definition runs where `minigrad.jit` is off, and for operands that do not suit.
        suits: whether the compiled forward takes these operands. It is called with all of them in order.
    """
    def register(forward: Function) -> FasterBody:
        body = FasterBody(primitive, forward, suits, JIT)
        primitive.add_body(body)
        return body

    return register


def rule_of(body: FasterBody, name: str) -> Callable[[Function], Function]:
    """Decorate the compiled rule of one input."""
    def register(rule: Function) -> Function:
        body.gradient(**{name: rule})
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
