"""Exponentials, logarithms, and what is made of them.

An exponential overflows: ``exp(1000)`` is ∞, and so is its slope. These rules leave ``0 · ∞ = NaN`` as it is, for the
sake of their speed: guard the argument too, ``where(x < 9, exp(where(x < 9, x, 0)), 0)``, or `clip` it.
"""

from __future__ import annotations

import math
from typing import Any

from minigrad import device
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.comparison import isinf
from minigrad.ops.edges import off_the_edge
from minigrad.ops.selection import where


@primitive(floating=True)
def exp(x):
    """``eˣ``.

    Where it overflows, so does its slope, and even a gradient of 0 becomes ``0 · ∞ = NaN``. If overflowing elements are
    thrown away afterwards, guard the argument as well: ``where(x < 9, exp(where(x < 9, x, 0)), 0)``, or `clip` it.
    """
    return xp(x).exp(x)


exp.gradient(x=lambda g, out: g * out)


@primitive(floating=True)
def exp2(x):
    """``2ˣ``. Where it overflows even a gradient of 0 becomes NaN, as with `exp`, which says what to do."""
    return xp(x).exp2(x)


exp2.gradient(x=lambda g, out: g * (out * math.log(2)))


@primitive(floating=True)
def expm1(x):
    """``eˣ - 1``, exact near x = 0."""
    return xp(x).expm1(x)


expm1.gradient(x=lambda g, x: g * exp(x))  # not out + 1, which has lost the digits of eˣ where x is far below 0


@primitive(floating=True)
def log(x):
    """The natural logarithm. A gradient of exactly 0 stays 0 where x is not positive."""
    return xp(x).log(x)


log.gradient(x=lambda g, x: g / off_the_edge(g, x, x > 0))


@primitive(floating=True)
def log2(x):
    """The logarithm to base 2. A gradient of exactly 0 stays 0 where x is not positive."""
    return xp(x).log2(x)


log2.gradient(x=lambda g, x: g / (off_the_edge(g, x, x > 0) * math.log(2)))


@primitive(floating=True)
def log10(x):
    """The logarithm to base 10. A gradient of exactly 0 stays 0 where x is not positive."""
    return xp(x).log10(x)


log10.gradient(x=lambda g, x: g / (off_the_edge(g, x, x > 0) * math.log(10)))


@primitive(floating=True)
def log1p(x):
    """``log(1 + x)``, exact near x = 0. A gradient of exactly 0 stays 0 where x is not above -1."""
    return xp(x).log1p(x)


log1p.gradient(x=lambda g, x: g / (1 + off_the_edge(g, x, x > -1, 0.0)))


@primitive(floating=True)
def sigmoid(x):
    """``1 / (1 + e⁻ˣ)``; far below 0 it has all its digits, too."""
    return device.expit(x)


sigmoid.gradient(x=lambda g, out: g * (out - out * out))


@primitive(broadcasts=True, floating=True)
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


@primitive(floating=True)
def erf(x):
    """The error function, ``2/√π ∫₀ˣ exp(-t²) dt``."""
    return device.erf(x)


erf.gradient(x=lambda g, x: g * (exp(-(x * x)) * (2 / math.sqrt(math.pi))))
