"""Hyperbolic functions, and their inverses. ``sinh`` and ``cosh`` overflow as ``exp`` does, see there."""

from __future__ import annotations

from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.edges import off_the_edge
from minigrad.ops.powers import hypot, sqrt
from minigrad.ops.selection import absolute


@primitive(floating=True)
def sinh(x):
    """``(eˣ - e⁻ˣ) / 2``."""
    return xp(x).sinh(x)


sinh.gradient(x=lambda g, x: g * cosh(x))


@primitive(floating=True)
def cosh(x):
    """``(eˣ + e⁻ˣ) / 2``."""
    return xp(x).cosh(x)


cosh.gradient(x=lambda g, x: g * sinh(x))


@primitive(floating=True)
def tanh(x):
    """``sinh x / cosh x``, in [-1, 1]."""
    return xp(x).tanh(x)


tanh.gradient(x=lambda g, out: g * (1 - out * out))


@primitive(floating=True)
def asinh(x):
    """The inverse of ``sinh``."""
    return xp(x).arcsinh(x)


asinh.gradient(x=lambda g, x: g / hypot(x, 1.0))


@primitive(floating=True)
def acosh(x):
    """The inverse of ``cosh``, at least 0. A gradient of exactly 0 stays 0 where x ≤ 1."""
    return xp(x).arccosh(x)


def acosh_gradient(g, x):
    x = off_the_edge(g, x, x > 1, 2.0)
    return g / (sqrt(x - 1) * sqrt(x + 1))


acosh.gradient(x=acosh_gradient)


@primitive(floating=True)
def atanh(x):
    """The inverse of ``tanh``. A gradient of exactly 0 stays 0 where |x| ≥ 1."""
    return xp(x).arctanh(x)


def atanh_gradient(g, x):
    x = off_the_edge(g, x, absolute(x) < 1, 0.0)
    return g / ((1 - x) * (1 + x))


atanh.gradient(x=atanh_gradient)

arcsinh, arccosh, arctanh = asinh, acosh, atanh  # NumPy's names
