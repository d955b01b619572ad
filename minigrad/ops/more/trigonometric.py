"""Trigonometric functions of angles in radians, and hyperbolic functions.

``sinh`` and ``cosh`` overflow as `exp` does, which says what to do.
"""

from __future__ import annotations

from minigrad.device import xp
from minigrad.engine.primitive import primitive


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
