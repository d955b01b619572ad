"""Remainders, signs and rounding to whole numbers, and PyTorch's products with a sum around them.

Functions in steps have the slope 0 wherever they have one. They are declared to have no gradient: then a result says
at once that it requires none, where a gradient of zeros would let a model train on nothing. To pass a gradient
straight through a step (Bengio, Léonard and Courville 2013, arXiv:1308.3432):
``x + (minigrad.round(x) - x).detach()``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.arguments import public, whole_number
from minigrad.device import xp
from minigrad.engine.operands import numeric
from minigrad.engine.primitive import primitive
from minigrad.ops.arithmetic import add, div, mul, sub
from minigrad.ops.conversion import zeros_like
from minigrad.ops.edges import off_the_edge
from minigrad.ops.selection import absolute, sign, where


def _step(function: Callable[..., Any], x: Any, *arguments: Any) -> Any:
    """``function(x)`` for floating x; integers and booleans are whole already, and are copied."""
    return x.astype(x.dtype) if x.dtype.kind in "biu" else function(x, *arguments)


@primitive
def floor(x):
    """The largest whole number that is not above x, in x's dtype. No gradient."""
    return _step(xp(x).floor, x)


@primitive
def ceil(x):
    """The smallest whole number that is not below x, in x's dtype. No gradient."""
    return _step(xp(x).ceil, x)


@primitive
def trunc(x):
    """x without its fractional part, in x's dtype. No gradient."""
    return _step(xp(x).trunc, x)


@primitive
def round(x, decimals=0):
    """x to the nearest number with that many `decimals`, halves to the even one (NumPy's rule). No gradient."""
    decimals = whole_number(decimals, "decimals", "round", least=None)
    if decimals < 0:
        return xp(x).round(x, decimals)  # tens, hundreds: of integers too
    return _step(xp(x).round, x, decimals)


@primitive(broadcasts=True)
def floor_divide(x, y):
    """``x // y``, the floor of the quotient, broadcasting. No gradient."""
    return x // y


for _stepwise in (floor, ceil, trunc, round, floor_divide):
    _stepwise.no_gradient()


@primitive(broadcasts=True)
def remainder(x, y):
    """``x % y``, of the sign of y: ``x - floor(x / y) · y``, with slopes 1 and ``-floor(x / y)`` between jumps."""
    return x % y


remainder.gradient(x=lambda g: g,
                   y=lambda g, x, y: -g * floor_divide(x, off_the_edge(g, y, y != 0)))


@primitive(broadcasts=True)
def fmod(x, y):
    """The remainder of the sign of x: ``x - trunc(x / y) · y``, with slopes 1 and ``-trunc(x / y)`` between jumps."""
    return xp(x if hasattr(x, "dtype") else y).fmod(x, y)


fmod.gradient(x=lambda g: g,
              y=lambda g, x, y: -g * trunc(x / off_the_edge(g, y, y != 0)))


@primitive(broadcasts=True, floating=True, fresh=True)
def copysign(x, y):
    """``|x|`` with the sign of y, that of -0 too, broadcasting.

    The gradient of x is 0 at x = 0, that of y everywhere.
    """
    return xp(x if hasattr(x, "dtype") else y).copysign(x, y)


copysign.gradient(x=lambda g, x, out: g * (sign(x) * sign(out)),
                  y=lambda g: zeros_like(g))


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
    step, weight = sub(end, input), numeric(weight, "lerp").item() if isinstance(weight, np.generic) else weight
    if isinstance(weight, (int, float)):
        return add(input, mul(step, weight)) if abs(weight) < 0.5 else sub(end, mul(step, 1 - weight))
    if not hasattr(weight, "dtype"):
        raise TypeError(f"lerp: weight must be a number or a tensor, got {type(weight).__name__}")
    nearer = absolute(weight) < 0.5
    start, factor = where(nearer, add(input, zeros_like(weight)), end), where(nearer, weight, sub(weight, 1))
    return add(start, mul(step, factor))


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
