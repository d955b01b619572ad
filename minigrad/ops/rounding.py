"""Functions in steps: their slope is 0 wherever they have one, and they are declared to have no gradient.

A result that requires none says so at once, where a gradient of zeros would let a model train on nothing. To pass a
gradient straight through a step (Bengio, Léonard and Courville 2013, arXiv:1308.3432):
``x + (minigrad.round(x) - x).detach()``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.device import xp
from minigrad.engine.primitive import primitive


def _step(function: Callable[..., Any], x: Any, *arguments: Any) -> Any:
    """``function(x)`` for floating x; integers and booleans are whole already, and are copied."""
    return function(x, *arguments) if x.dtype.kind == "f" else x.astype(x.dtype)


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
    if not isinstance(decimals, int):
        raise TypeError(f"round: decimals must be an integer, got {decimals!r}")
    if decimals < 0:
        return xp(x).round(x, decimals)  # tens, hundreds: of integers too
    return _step(xp(x).round, x, decimals)


@primitive
def sign(x):
    """-1, 0 or 1. No gradient."""
    return xp(x).sign(x)


@primitive(broadcasts=True)
def floor_divide(x, y):
    """``x // y``, the floor of the quotient, broadcasting. No gradient."""
    return x // y


for _stepwise in (floor, ceil, trunc, round, sign, floor_divide):
    _stepwise.no_gradient()
