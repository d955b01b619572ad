"""Exponentials and logarithms near 0, logarithms to other bases, and sums of exponentials."""

from __future__ import annotations

import math
from typing import Any

from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.comparison import isinf
from minigrad.ops.edges import quotient
from minigrad.ops.exponential import exp, sigmoid
from minigrad.ops.selection import where


@primitive(floating=True, fresh=True)
def expm1(x):
    """``eˣ - 1``, exact near x = 0."""
    return xp(x).expm1(x)


expm1.gradient(x=lambda g, x: g * exp(x))  # not out + 1, which has lost the digits of eˣ where x is far below 0


@primitive(floating=True, fresh=True)
def log2(x):
    """The logarithm to base 2. A gradient of exactly 0 stays 0 where x is not positive."""
    return xp(x).log2(x)


log2.gradient(x=lambda g, x: quotient(g, x * math.log(2), x > 0))


@primitive(floating=True, fresh=True)
def log10(x):
    """The logarithm to base 10. A gradient of exactly 0 stays 0 where x is not positive."""
    return xp(x).log10(x)


log10.gradient(x=lambda g, x: quotient(g, x * math.log(10), x > 0))


@primitive(floating=True, fresh=True)
def log1p(x):
    """``log(1 + x)``, exact near x = 0. A gradient of exactly 0 stays 0 where x is not above -1."""
    return xp(x).log1p(x)


log1p.gradient(x=lambda g, x: quotient(g, 1 + x, x > -1))


@primitive(broadcasts=True, floating=True, fresh=True)
def logaddexp(x, y):
    """``log(eˣ + eʸ)`` without overflow, broadcasting.

    Its slopes are the softmax weights of x and y; where both are -∞, they are 0.
    """
    return xp(x if hasattr(x, "dtype") else y).logaddexp(x, y)


logaddexp.gradient(x=lambda g, x, y: g * weight_of_first(x, y),
                   y=lambda g, x, y: g * weight_of_first(y, x))


def weight_of_first(x: Any, y: Any) -> Any:
    """``eˣ / (eˣ + eʸ) = sigmoid(x - y)``; of two equal infinities the difference would be NaN."""
    infinite = isinf(x) & (x == y)
    weight = sigmoid(where(infinite, 0.0, x) - where(infinite, 0.0, y))
    return where(infinite & (x < 0), 0.0, weight)
