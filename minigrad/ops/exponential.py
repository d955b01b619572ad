"""Exponentials, logarithms, powers and roots.

An exponential overflows: ``exp(1000)`` is ∞, and so is its slope. These rules leave ``0 · ∞ = NaN`` as it is, for the
sake of their speed: guard the argument too, ``where(x < 9, exp(where(x < 9, x, 0)), 0)``, or `clip` it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad import device
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.comparison import isinf, isnan
from minigrad.ops.conversion import zeros_like
from minigrad.ops.edges import has_no_zeros, product, quietly, quotient
from minigrad.ops.selection import where


@primitive(floating=True, fresh=True)
def exp(x):
    """``eˣ``.

    Where it overflows, so does its slope, and even a gradient of 0 becomes ``0 · ∞ = NaN``. If overflowing elements are
    thrown away afterwards, guard the argument as well: ``where(x < 9, exp(where(x < 9, x, 0)), 0)``, or `clip` it.
    """
    return xp(x).exp(x)


exp.gradient(x=lambda g, out: g * out)


@primitive(floating=True, fresh=True)
def log(x):
    """The natural logarithm. A gradient of exactly 0 stays 0 where x is not positive."""
    return xp(x).log(x)


log.gradient(x=lambda g, x: quotient(g, x, x > 0))


@primitive(broadcasts=True, fresh=True)
def power(x, y):
    """``x ** y``, broadcasting.

    Its gradient is finite, to every order, where the mathematical one is: at x = 0 too. A gradient of exactly 0 stays 0
    at a pole (``x**-1`` at 0) and outside the domain (``x**0.5`` at -1).
    """
    return x ** y


power.gradient(x=lambda g, x, y: base_slope(g, x, y) if isinstance(y, (int, float)) else base_slopes(g, x, y),
               y=lambda g, x, out: exponent_slope(g, x, out))


def base_slope(g: Any, x: Any, y: float) -> Any:
    """``g · y · x**(y-1)``; the exponents 0, where ``0 · 0**-1`` would be NaN, and 2 are written out."""
    if y == 0:
        return g * zeros_like(x)
    if y == 2:
        return g * x * 2
    whole = float(y).is_integer()
    regular = (whole and y > 0) or (x != 0 if whole else x > 0 if y < 1 else x >= 0)
    if has_no_zeros(regular):
        return g * y * x ** (y - 1)
    return product(g, y * quietly(power, x, y - 1))


def base_slopes(g: Any, x: Any, y: Any) -> Any:
    """``g · y · x**(y-1)`` for an array of exponents; 0 where an exponent of 0 meets a power that is infinite."""
    constant = (x == 0) & (y == 0)
    return product(g, product(y, where(constant, 0.0, quietly(power, x, where(constant, 1.0, y - 1)))))


def exponent_slope(g: Any, x: Any, out: Any) -> Any:
    """``g · out · log x``; at x = 0, where ``0**y`` does not change with y > 0, it is 0, and -∞ where y < 0."""
    if isinstance(x, (int, float)):
        return g * out * (where(isinf(out), -out, 0.0) if x == 0 else math.log(x) if x > 0 else math.nan)
    if has_no_zeros(x > 0):
        return g * out * log(x)
    return product(g, product(out, quietly(log, where((x != 0) | isinf(out) | isnan(out), x, 1.0))))


@primitive(floating=True, fresh=True)
def sqrt(x):
    """The square root. A gradient of exactly 0 stays 0 where x is not positive."""
    return xp(x).sqrt(x)


sqrt.gradient(x=lambda g, out: quotient(g * 0.5, out, out > 0))


@primitive(floating=True, fresh=True)
def sigmoid(x):
    """``1 / (1 + e⁻ˣ)``; far below 0 it has all its digits, too."""
    return device.expit(x)


sigmoid.gradient(x=lambda g, out: g * (out - out * out))


def bell(x: Any, width: float) -> Any:
    """``exp(-x²/width)``, of an array or a tensor; the digits of x² that float32 lacks would count far out."""
    wide = x.astype(np.float64)
    return exp(wide * wide * (-1 / width)).astype(x.dtype)


@primitive(floating=True, fresh=True)
def erf(x):
    """The error function, ``2/√π ∫₀ˣ exp(-t²) dt``."""
    return device.erf(x)


erf.gradient(x=lambda g, x: g * (bell(x, 1) * (2 / math.sqrt(math.pi))))


@primitive(floating=True, fresh=True)
def erfc(x):
    """``1 - erf(x)``; far above 0 it has all its digits, too."""
    return device.erfc(x)


erfc.gradient(x=lambda g, x: g * (bell(x, 1) * (-2 / math.sqrt(math.pi))))
