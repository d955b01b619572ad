"""Elementwise operations: each forward with its gradient rules beside it.

With ``out = f(x)`` elementwise, the Jacobian is diagonal, and the rule is ``g * f'(x)``. Where ``f`` has a kink, the
rule takes a subgradient, and the docstring says which. Where ``f'`` is infinite (``log``, ``sqrt``, a division by 0),
a gradient of exactly 0 stays 0, so that ``where(x > 0, log(x), 0)`` has a finite gradient everywhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad import device
from minigrad.device import xp
from minigrad.primitive import primitive

# --------------------------------------------------------------------------- arithmetic


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
    """``x / y``, broadcasting; integers give float32."""
    return x / y


div.gradient(x=lambda g, y: divide_unless_both_zero(g, y),
             y=lambda g, y, out: quotient_slope(g, y, out))


def quotient_slope(g: Any, y: Any, out: Any) -> Any:
    """``-g · out / y``, where ``out = x / y``; but 0 where g and y are both 0, although ``out`` is infinite there."""
    both = (g == 0) & (y == 0)
    return -g * where(both, 0.0, out) / where(both, 1.0, y)


@primitive
def neg(x):
    """``-x``."""
    return -x


neg.gradient(x=lambda g: -g)


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


def divide_unless_both_zero(g: Any, x: Any) -> Any:
    """``g / x``, but 0 where both are 0."""
    if isinstance(x, (int, float)) and x != 0:
        return g / x
    both = (g == 0) & (x == 0)
    return g / where(both, 1.0, x)


# --------------------------------------------------------------------------- comparison and logic: no gradient


@primitive(broadcasts=True)
def equal(x, y):
    return x == y


@primitive(broadcasts=True)
def not_equal(x, y):
    return x != y


@primitive(broadcasts=True)
def less(x, y):
    return x < y


@primitive(broadcasts=True)
def less_equal(x, y):
    return x <= y


@primitive(broadcasts=True)
def greater(x, y):
    return x > y


@primitive(broadcasts=True)
def greater_equal(x, y):
    return x >= y


@primitive
def logical_and(x, y):
    """``x & y`` on booleans."""
    return x & y


@primitive
def logical_or(x, y):
    """``x | y`` on booleans."""
    return x | y


@primitive
def logical_not(x):
    """``~x`` on booleans."""
    return ~x


@primitive
def sign(x):
    """-1, 0 or 1."""
    return xp(x).sign(x)


@primitive
def zeros_like(x):
    """Zeros of the shape, dtype and device of x."""
    return xp(x).zeros_like(x)


for _comparison in (equal, not_equal, less, less_equal, greater, greater_equal, logical_and, logical_or, logical_not,
                    sign, zeros_like):
    _comparison.no_gradient()


# --------------------------------------------------------------------------- exponentials and roots


@primitive(floating=True)
def exp(x):
    """``eˣ``."""
    return xp(x).exp(x)


exp.gradient(x=lambda g, out: g * out)


@primitive(floating=True)
def log(x):
    """The natural logarithm. A zero gradient stays zero at x = 0."""
    return xp(x).log(x)


log.gradient(x=lambda g, x: divide_unless_both_zero(g, x))


@primitive(floating=True)
def sqrt(x):
    """The square root. A zero gradient stays zero at x = 0."""
    return xp(x).sqrt(x)


sqrt.gradient(x=lambda g, out: divide_unless_both_zero(g * 0.5, out))


@primitive(floating=True)
def tanh(x):
    return xp(x).tanh(x)


tanh.gradient(x=lambda g, out: g * (1 - out * out))


@primitive(floating=True)
def sigmoid(x):
    """``1 / (1 + e⁻ˣ)``, computed as ``(1 + tanh(x/2)) / 2``, which never overflows."""
    return (xp(x).tanh(x * 0.5) + 1) * 0.5


sigmoid.gradient(x=lambda g, out: g * (out * (1 - out)))


@primitive(floating=True)
def erf(x):
    """The error function, ``2/√π ∫₀ˣ exp(-t²) dt``."""
    return device.erf(x)


erf.gradient(x=lambda g, x: g * (exp(-(x * x)) * (2 / math.sqrt(math.pi))))


# --------------------------------------------------------------------------- kinks


@primitive
def relu(x):
    """``max(x, 0)``; the gradient at 0 is 0."""
    return xp(x).maximum(x, 0)


relu.gradient(x=lambda g, out: g * (out > 0))


@primitive
def absolute(x):
    """``|x|``; the gradient at 0 is 0."""
    return xp(x).abs(x)


absolute.gradient(x=lambda g, x: g * sign(x))


@primitive(broadcasts=True)
def maximum(x, y):
    """The larger of x and y; where they are equal, each gets half of the gradient."""
    return xp(x if hasattr(x, "dtype") else y).maximum(x, y)


@primitive(broadcasts=True)
def minimum(x, y):
    """The smaller of x and y; where they are equal, each gets half of the gradient."""
    return xp(x if hasattr(x, "dtype") else y).minimum(x, y)


def _share(g: Any, wins: Any, ties: Any) -> Any:
    return where(wins, g, where(ties, g * 0.5, 0.0))


maximum.gradient(x=lambda g, x, y: _share(g, greater(x, y), equal(x, y)),
                 y=lambda g, x, y: _share(g, greater(y, x), equal(x, y)))
minimum.gradient(x=lambda g, x, y: _share(g, less(x, y), equal(x, y)),
                 y=lambda g, x, y: _share(g, less(y, x), equal(x, y)))


@primitive
def clip(x, min=None, max=None):
    """x kept within [min, max], numbers or None for no bound; on a bound the gradient still passes."""
    if min is None and max is None:
        raise ValueError("clip: give min, max or both")
    for bound in (min, max):
        if bound is not None and not isinstance(bound, (int, float)):
            raise TypeError(f"clip: min and max must be numbers, got {type(bound).__name__}; "
                            "minigrad.maximum and minimum take tensors")
        if isinstance(bound, float) and x.dtype.kind != "f":
            x = x.astype(np.float32)
    return xp(x).clip(x, min, max)


def clip_gradient(g, x, min, max):
    if min is not None:
        g = where(x >= min, g, 0.0)
    return g if max is None else where(x <= max, g, 0.0)


clip.gradient(x=clip_gradient)


@primitive(broadcasts=True)
def where(condition, x, y):
    """x where the condition holds, y elsewhere; all three broadcast. The condition is boolean and has no gradient."""
    if not hasattr(condition, "dtype") or condition.dtype.kind != "b":
        kind = getattr(condition, "dtype", type(condition).__name__)
        raise TypeError(f"where: the condition must be a boolean tensor or array, got {kind}")
    out = xp(condition).where(condition, x, y)
    only_numbers = not hasattr(x, "dtype") and not hasattr(y, "dtype")
    return out.astype(np.float32) if only_numbers and out.dtype.kind == "f" else out


where.gradient(x=lambda g, condition: where(condition, g, 0.0),
               y=lambda g, condition: where(condition, 0.0, g))


@primitive
def astype(x, dtype):
    """x in another dtype (a copy); the gradient is cast back."""
    return x.astype(dtype)


astype.gradient(x=lambda g, x_dtype: g.astype(x_dtype))
