"""Remainders, and rounding to whole numbers.

Functions in steps have the slope 0 wherever they have one. They are declared to have no gradient: then a result says
at once that it requires none, where a gradient of zeros would let a model train on nothing. To pass a gradient
straight through a step (Bengio, Léonard and Courville 2013, arXiv:1308.3432):
``x + (minigrad.round(x) - x).detach()``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.arguments import whole_number
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.edges import has_no_zeros, product, quietly


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


for _stepwise in (floor, ceil, round, floor_divide):
    _stepwise.no_gradient()


@primitive(broadcasts=True)
def remainder(x, y):
    """``x % y``, of the sign of y: ``x - floor(x / y) · y``, with slopes 1 and ``-floor(x / y)`` between jumps."""
    return x % y


remainder.gradient(x=lambda g: g,
                   y=lambda g, x, y: -g * floor_divide(x, y) if has_no_zeros(y) else
                   -product(g, quietly(floor_divide, x, y)))
