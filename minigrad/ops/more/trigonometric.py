"""Trigonometric functions of angles in radians, hyperbolic functions, and the inverses of both.

``sinh`` and ``cosh`` overflow as `exp` does, which says what to do.
"""

from __future__ import annotations

import math
from typing import Any

from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.edges import off_the_edge
from minigrad.ops.exponential import sqrt
from minigrad.ops.more.exponential import hypot
from minigrad.ops.selection import absolute, where


@primitive(floating=True, fresh=True)
def sin(x):
    """The sine."""
    return xp(x).sin(x)


sin.gradient(x=lambda g, x: g * cos(x))


@primitive(floating=True, fresh=True)
def cos(x):
    """The cosine."""
    return xp(x).cos(x)


cos.gradient(x=lambda g, x: -g * sin(x))


@primitive(floating=True, fresh=True)
def tan(x):
    """The tangent."""
    return xp(x).tan(x)


tan.gradient(x=lambda g, out: g * (1 + out * out))


@primitive(floating=True, fresh=True)
def asin(x):
    """The inverse sine, in [-π/2, π/2]. A gradient of exactly 0 stays 0 where |x| ≥ 1."""
    return xp(x).arcsin(x)


@primitive(floating=True, fresh=True)
def acos(x):
    """The inverse cosine, in [0, π]. A gradient of exactly 0 stays 0 where |x| ≥ 1."""
    return xp(x).arccos(x)


asin.gradient(x=lambda g, x: over_chord(g, x))
acos.gradient(x=lambda g, x: over_chord(-g, x))


def over_chord(g: Any, x: Any) -> Any:
    """``g / √(1 - x²)``, the root of a product, which has all its digits near ±1."""
    x = off_the_edge(g, x, absolute(x) < 1, 0.0)
    return g / sqrt((1 - x) * (1 + x))


@primitive(floating=True, fresh=True)
def atan(x):
    """The inverse tangent, in [-π/2, π/2]."""
    return xp(x).arctan(x)


atan.gradient(x=lambda g, x: over_square(g, hypot(x, 1.0)))


@primitive(broadcasts=True, floating=True, fresh=True)
def atan2(y, x):
    """The angle of the point (x, y), in [-π, π], broadcasting; mind that y comes first, as in NumPy.

    There is no slope at the origin, where the gradient is 0.
    """
    return xp(y if hasattr(y, "dtype") else x).arctan2(y, x)


# with r² = x² + y²:   ∂/∂y = x / r²,   ∂/∂x = -y / r²
atan2.gradient(y=lambda g, y, x: over_square(g, hypot(x, y), x),
               x=lambda g, y, x: over_square(-g, hypot(x, y), y))


def over_square(g: Any, r: Any, x: Any = 1.0) -> Any:
    """``g · x / r²``, in two divisions, as the square might overflow; 0 at r = 0."""
    r = where(r == 0, math.inf, r)
    return g * (x / r) / r


# --------------------------------------------------------------------------- hyperbolic


@primitive(floating=True, fresh=True)
def sinh(x):
    """``(eˣ - e⁻ˣ) / 2``."""
    return xp(x).sinh(x)


sinh.gradient(x=lambda g, x: g * cosh(x))


@primitive(floating=True, fresh=True)
def cosh(x):
    """``(eˣ + e⁻ˣ) / 2``."""
    return xp(x).cosh(x)


cosh.gradient(x=lambda g, x: g * sinh(x))


@primitive(floating=True, fresh=True)
def tanh(x):
    """``sinh x / cosh x``, in [-1, 1]."""
    return xp(x).tanh(x)


tanh.gradient(x=lambda g, out: g * (1 - out * out))


@primitive(floating=True, fresh=True)
def asinh(x):
    """The inverse of ``sinh``."""
    return xp(x).arcsinh(x)


asinh.gradient(x=lambda g, x: g / hypot(x, 1.0))


@primitive(floating=True, fresh=True)
def acosh(x):
    """The inverse of ``cosh``, at least 0. A gradient of exactly 0 stays 0 where x ≤ 1."""
    return xp(x).arccosh(x)


def acosh_gradient(g, x):
    x = off_the_edge(g, x, x > 1, 2.0)
    return g / (sqrt(x - 1) * sqrt(x + 1))


acosh.gradient(x=acosh_gradient)


@primitive(floating=True, fresh=True)
def atanh(x):
    """The inverse of ``tanh``. A gradient of exactly 0 stays 0 where |x| ≥ 1."""
    return xp(x).arctanh(x)


def atanh_gradient(g, x):
    x = off_the_edge(g, x, absolute(x) < 1, 0.0)
    return g / ((1 - x) * (1 + x))


atanh.gradient(x=atanh_gradient)

# NumPy's names
arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
arcsinh, arccosh, arctanh = asinh, acosh, atanh
