"""Exponentials, logarithms, and what is made of them."""

from __future__ import annotations

import math

from minigrad import device
from minigrad.device import xp
from minigrad.ops.edges import divide_unless_both_zero
from minigrad.primitive import primitive


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
def sigmoid(x):
    """``1 / (1 + e⁻ˣ)``, computed as ``(1 + tanh(x/2)) / 2``, which never overflows."""
    return (xp(x).tanh(x * 0.5) + 1) * 0.5


sigmoid.gradient(x=lambda g, out: g * (out * (1 - out)))


@primitive(floating=True)
def erf(x):
    """The error function, ``2/√π ∫₀ˣ exp(-t²) dt``."""
    return device.erf(x)


erf.gradient(x=lambda g, x: g * (exp(-(x * x)) * (2 / math.sqrt(math.pi))))
