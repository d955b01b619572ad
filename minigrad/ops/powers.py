"""Powers and roots."""

from __future__ import annotations

import math
from typing import Any

from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.comparison import isfinite
from minigrad.ops.conversion import zeros_like
from minigrad.ops.edges import finite, off_the_edge
from minigrad.ops.exponential import log
from minigrad.ops.selection import where


@primitive(broadcasts=True)
def power(x, y):
    """``x ** y``, broadcasting.

    Its gradient is finite, to every order, where the mathematical one is: at x = 0 too. A gradient of exactly 0 stays 0
    at a pole (``x**-1`` at 0) and outside the domain (``x**0.5`` at -1).
    """
    return x ** y


power.gradient(x=lambda g, x, y: base_slope(g, x, y) if isinstance(y, (int, float)) else base_slopes(g, x, y),
               y=lambda g, x, out: exponent_slope(g, x, out))


def base_slope(g: Any, x: Any, y: float) -> Any:
    """``g · y · x**(y-1)``, with the exponents 0, 1 and 2 written out: ``0 · 0**-1`` is 0 here, not NaN."""
    if y == 0:
        return g * zeros_like(x)
    if y == 1:
        return g
    if y == 2:
        return g * x * 2
    whole = float(y).is_integer()
    if whole and y > 0:
        return g * y * x ** (y - 1)
    regular = x != 0 if whole else x > 0 if y < 1 else x >= 0
    return g * y * off_the_edge(g, x, regular) ** (y - 1)


def base_slopes(g: Any, x: Any, y: Any) -> Any:
    """``g · y · x**(y-1)`` for an array of exponents; 0 where an exponent of 0 meets a power that is infinite."""
    constant = (x == 0) & (y == 0)
    power = finite(g, x ** where(constant, 1.0, y - 1))
    return g * y * where((y == 0) & ~isfinite(power), 0.0, where(constant, 0.0, power))


def exponent_slope(g: Any, x: Any, out: Any) -> Any:
    """``g · out · log x``; 0 at x = 0, where ``0**y`` does not change with y > 0."""
    if isinstance(x, (int, float)):
        return g * out * (0.0 if x == 0 else math.log(x) if x > 0 else math.nan)
    regular = (g != 0) | (x > 0)
    return g * where(regular, out, 0.0) * log(where(regular & (x != 0), x, 1.0))


@primitive(floating=True)
def sqrt(x):
    """The square root. A gradient of exactly 0 stays 0 where x is not positive."""
    return xp(x).sqrt(x)


sqrt.gradient(x=lambda g, out: g * 0.5 / off_the_edge(g, out, out > 0))


@primitive(floating=True)
def rsqrt(x):
    """``1 / √x``. A gradient of exactly 0 stays 0 where x is not positive."""
    return 1 / xp(x).sqrt(x)


def rsqrt_gradient(g, out):
    out = finite(g, out)
    return g * -0.5 * (out * out * out)


rsqrt.gradient(x=rsqrt_gradient)


@primitive(broadcasts=True, floating=True)
def hypot(x, y):
    """``√(x² + y²)`` without overflow, broadcasting; the gradient at (0, 0) is 0, as that of ``|x|`` at 0 is."""
    return xp(x if hasattr(x, "dtype") else y).hypot(x, y)


hypot.gradient(x=lambda g, x, out: g * (x / where(out == 0, math.inf, out)),
               y=lambda g, y, out: g * (y / where(out == 0, math.inf, out)))
