"""Which operands kernels take, and how a compiled body is registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.engine.primitive import Primitive
from minigrad.kernels.bodies import JIT, FasterBody, faster_body

Function = Callable[..., Any]


def compiled_body(primitive: Primitive, suits: Callable[..., bool]) -> Callable[[Function], FasterBody]:
    """Decorate the compiled forward of `primitive`: a `faster_body` that runs where `minigrad.jit` is on."""
    return faster_body(primitive, suits, JIT, fresh=True)


def rule_of(body: FasterBody, name: str) -> Callable[[Function], Function]:
    """Decorate the compiled rule of one input."""
    def register(rule: Function) -> Function:
        body.gradient(**{name: rule})
        return rule

    return register


def are_floating(*operands: Any) -> bool:
    """Whether all are float32, or all float64, arrays in host memory, and none is empty."""
    first = operands[0]
    return all(type(x) is np.ndarray and x.dtype.char in "fd" and x.dtype.isnative and x.dtype == first.dtype
               and x.size > 0 for x in operands)


def are_dense(*operands: Any) -> bool:
    """Whether all are that, and C-contiguous: what kernels take."""
    return are_floating(*operands) and all(x.flags.c_contiguous and x.flags.aligned for x in operands)


def is_mask(x: Any, shape: tuple[int, ...]) -> bool:
    """Whether x is a boolean array of this shape in host memory, C-contiguous."""
    return type(x) is np.ndarray and x.dtype.kind == "b" and x.shape == shape and x.flags.c_contiguous


def dense(x: Any) -> Any:
    """A host array as it is if kernels take it, else a copy that they take."""
    return x if x.flags.c_contiguous and x.flags.aligned else x.copy("C")
