"""Sums, differences, products and quotients.

With ``out = f(x)`` element by element, the Jacobian is diagonal, and the rule is ``g · f'(x)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.arguments import public
from minigrad.engine.primitive import primitive
from minigrad.ops.edges import finite, has_no_zeros, off_the_edge
from minigrad.ops.rounding import floor_divide
from minigrad.ops.selection import absolute, where


@primitive(broadcasts=True)
def add(x, y):
    """``x + y``, broadcasting."""
    return x + y


add.gradient(x=lambda g: g,
             y=lambda g: g)


@primitive(broadcasts=True)
def sub(x, y):
    """``x - y``, broadcasting."""
    return x - y


sub.gradient(x=lambda g: g,
             y=lambda g: -g)


@primitive(broadcasts=True)
def mul(x, y):
    """``x * y``, broadcasting."""
    return x * y


mul.gradient(x=lambda g, y: g * y,
             y=lambda g, x: g * x)


@primitive(broadcasts=True, floating=True)
def div(x, y):
    """``x / y``, broadcasting; integers give float32. A gradient of exactly 0 stays 0 at y = 0."""
    return x / y


div.gradient(x=lambda g, y: by_denominator(g, y),
             y=lambda g, y, out: by_quotient(g, y, out))


def by_denominator(g: Any, y: Any) -> Any:
    """``g / y``, but 0 where both are 0."""
    if has_no_zeros(y) or (isinstance(y, (int, float)) and y != 0):
        return g / y
    return g / off_the_edge(g, y, y != 0)


def by_quotient(g: Any, y: Any, out: Any) -> Any:
    """``-g · out / y``, where ``out = x / y``; but 0 where g and y are both 0, although ``out`` is infinite there."""
    if has_no_zeros(y):
        return -g * out / y
    regular = y != 0
    return -g * off_the_edge(g, out, regular, 0.0) / off_the_edge(g, y, regular)


@primitive
def neg(x):
    """``-x``."""
    return -x


neg.gradient(x=lambda g: -g)


@primitive
def square(x):
    """``x²``."""
    return x * x


square.gradient(x=lambda g, x: g * x * 2)


@primitive(floating=True)
def reciprocal(x):
    """``1 / x``; integers give float32. A gradient of exactly 0 stays 0 at x = 0."""
    return 1 / x


reciprocal.gradient(x=lambda g, out: -g * square(finite(g, out)))


@primitive(broadcasts=True)
def remainder(x, y):
    """``x % y``, of the sign of y: ``x - floor(x / y) · y``, with slopes 1 and ``-floor(x / y)`` between jumps."""
    return x % y


remainder.gradient(x=lambda g: g,
                   y=lambda g, x, y: -g * floor_divide(x, off_the_edge(g, y, y != 0)))


# --------------------------------------------------------------------------- compositions, by PyTorch's names


def check_shapes(operation: str, *operands: Any) -> None:
    """ValueError, naming the operation, for operands that do not broadcast."""
    shapes = [tuple(x.shape) for x in operands if hasattr(x, "shape")]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"{operation}: the operands do not broadcast, their shapes are {shapes}") from None


@public
def lerp(input: Any, end: Any, weight: Any) -> Any:
    """Linear interpolation, ``input + weight · (end - input)``; all three broadcast.

    It is computed from the nearer end, so that a weight of 1 gives `end` exactly.
    """
    check_shapes("lerp", input, end, weight)
    step, weight = sub(end, input), weight.item() if isinstance(weight, np.generic) else weight
    if isinstance(weight, (int, float)):
        return add(input, mul(step, weight)) if abs(weight) < 0.5 else sub(end, mul(step, 1 - weight))
    if not hasattr(weight, "dtype"):
        raise TypeError(f"lerp: weight must be a number or a tensor, got {type(weight).__name__}")
    return where(absolute(weight) < 0.5, add(input, mul(step, weight)), sub(end, mul(step, sub(1, weight))))


@public
def addcmul(input: Any, tensor1: Any, tensor2: Any, value: float = 1) -> Any:
    """``input + value · tensor1 · tensor2``, broadcasting."""
    check_shapes("addcmul", input, tensor1, tensor2)
    return add(input, mul(mul(tensor1, tensor2), value))


@public
def addcdiv(input: Any, tensor1: Any, tensor2: Any, value: float = 1) -> Any:
    """``input + value · tensor1 / tensor2``, broadcasting."""
    check_shapes("addcdiv", input, tensor1, tensor2)
    return add(input, mul(div(tensor1, tensor2), value))
