"""GELU, exact and by the tanh approximation (Hendrycks and Gimpel 2016, arXiv:1606.08415)."""

from __future__ import annotations

import math
from typing import Any

from minigrad import device, ops
from minigrad.arguments import public
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.functional.compositions import tap

_ROOT_HALF = math.sqrt(0.5)
_DENSITY = 1 / math.sqrt(2 * math.pi)  # of the standard normal distribution at 0
_SLOPE, _CUBIC = math.sqrt(2 / math.pi), 0.044715


def gelu_exact_by_steps(x: Any) -> Any:
    """``x Φ(x)`` as a composition of small operations."""
    return x * tap("normal_cdf", 0.5 * (1 + ops.erf(x * _ROOT_HALF)))


@primitive(floating=True, composition=gelu_exact_by_steps, fresh=True)
def gelu_exact(x):
    """``x Φ(x)``, Φ the distribution function of the standard normal."""
    return x * (0.5 * (1 + device.erf(x * _ROOT_HALF)))


# d/dx x Φ(x) = Φ(x) + x φ(x), φ the density
gelu_exact.gradient(x=lambda g, x: g * (0.5 * (1 + ops.erf(x * _ROOT_HALF)) + x * (_DENSITY * ops.exp(x * x * -0.5))))


def gelu_tanh_by_steps(x: Any) -> Any:
    """The tanh approximation as a composition of small operations."""
    return 0.5 * x * (1 + tap("tanh", ops.tanh(_SLOPE * (x + _CUBIC * x * x * x))))


@primitive(floating=True, composition=gelu_tanh_by_steps, fresh=True)
def gelu_tanh(x):
    """``x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))``."""
    return 0.5 * x * (1 + xp(x).tanh(_SLOPE * (x + _CUBIC * x * x * x)))


# with u = √(2/π)(x + c x³), t = tanh u:   d/dx x/2 (1 + t) = (1 + t)/2 + x/2 (1 - t²) u'
def gelu_tanh_gradient(g, x):
    t = ops.tanh(_SLOPE * (x + _CUBIC * x * x * x))
    slope = _SLOPE * (1 + 3 * _CUBIC * x * x)
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)


gelu_tanh.gradient(x=gelu_tanh_gradient)


@public
def gelu(input: Any, approximate: str = "none") -> Any:
    """The Gaussian error linear unit.

    Args:
        input: any shape, floating.
        approximate: ``"none"`` for ``x Φ(x)``, ``"tanh"`` for the approximation.

    Raises:
        ValueError: for any other `approximate`.
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return gelu_exact(input) if approximate == "none" else gelu_tanh(input)
