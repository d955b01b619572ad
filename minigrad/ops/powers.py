"""Powers and roots."""

from __future__ import annotations

import math
from typing import Any

from minigrad.device import xp
from minigrad.ops.conversion import zeros_like
from minigrad.ops.edges import divide_unless_both_zero
from minigrad.ops.exponential import log
from minigrad.ops.selection import where
from minigrad.primitive import primitive


@primitive(broadcasts=True)
def power(x, y):
    """``x ** y``, broadcasting. Its gradient is finite, to every order, where the mathematical one is: at x = 0 too."""
    return x ** y


power.gradient(x=lambda g, x, y: power_slope(g, x, y),
               y=lambda g, x, out: g * out * log_of_base(x))


def power_slope(g: Any, x: Any, y: Any) -> Any:
    """``g · y · x**(y-1)``, with the exponents 0, 1 and 2 written out: ``0 · 0**-1`` is 0 here, not NaN."""
    if isinstance(y, (int, float)):
        if y == 0:
            return g * zeros_like(x)
        if y == 1:
            return g
        if y == 2:
            return g * x * 2
        if y > 1:
            return g * y * x ** (y - 1)
        return multiply_unless_zero(g * y, x, y - 1)
    constant = y == 0
    return where(constant, 0.0, multiply_unless_zero(g * y, x, where(constant, 1.0, y - 1)))


def log_of_base(x: Any) -> Any:
    """``log x``, but 0 at x = 0, where ``0**y`` does not change with y > 0."""
    if isinstance(x, (int, float)):
        return 0.0 if x == 0 else math.log(x) if x > 0 else math.nan
    return log(where(x == 0, 1.0, x))


def multiply_unless_zero(g: Any, x: Any, exponent: Any) -> Any:
    """``g · x**exponent``, but 0 where g and x are both 0 and the exponent is negative."""
    both = (g == 0) & (x == 0) & (exponent < 0)
    return g * where(both, 1.0, x) ** exponent


@primitive(floating=True)
def sqrt(x):
    """The square root. A zero gradient stays zero at x = 0."""
    return xp(x).sqrt(x)


sqrt.gradient(x=lambda g, out: divide_unless_both_zero(g * 0.5, out))
