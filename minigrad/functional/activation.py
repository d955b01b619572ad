"""GELU, exact and by the tanh approximation (Hendrycks and Gimpel 2016, arXiv:1606.08415), and SiLU.

relu, sigmoid and tanh are operations of `minigrad.ops`.
"""

from __future__ import annotations

import math
from typing import Any

from minigrad import device, ops
from minigrad.engine.primitive import primitive, public
from minigrad.functional.compositions import tap
from minigrad.ops.elementwise import bell

_LINEAR, _CUBIC = math.sqrt(2 / math.pi), 0.044715 * math.sqrt(2 / math.pi)
_FLAT = 10.0  # from here on tanh u is 1 to the last digit of float64; in float16 the cube of x would soon overflow


@primitive(floating=True, fresh=True)
def normal_cdf(x):
    """``Φ(x) = erfc(-x / √2) / 2``, the distribution function of the standard normal, with all its digits."""
    return device.ndtr(x)


def normal_density(x: Any) -> Any:
    """``φ(x) = exp(-x²/2) / √(2π)``, the density."""
    return bell(x, 2) * (1 / math.sqrt(2 * math.pi))


normal_cdf.gradient(x=lambda g, x: g * normal_density(x))


@primitive(floating=True, composite=True, fresh=True)
def gelu_exact(x):
    """``x Φ(x)``, Φ the distribution function of the standard normal."""
    return x * tap("normal_cdf", normal_cdf(x))


gelu_exact.gradient(x=lambda g, x: g * (normal_cdf(x) + x * normal_density(x)))


@primitive(floating=True, composite=True, fresh=True)
def gelu_tanh(x):
    """``x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))``."""
    z = ops.clip(x, -_FLAT, _FLAT)
    return 0.5 * x * (1 + tap("tanh", ops.tanh(z * (_LINEAR + _CUBIC * (z * z)))))


# with u = √(2/π)(x + c x³), t = tanh u:   d/dx x/2 (1 + t) = (1 + t)/2 + x/2 (1 - t²) u'
def gelu_tanh_gradient(g, x):
    x = ops.clip(x, -_FLAT, _FLAT)
    square = x * x
    t = ops.tanh(x * (_LINEAR + _CUBIC * square))
    slope = _LINEAR + 3 * _CUBIC * square
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


@public
def silu(input: Any) -> Any:
    """``x σ(x)``, also called swish (Elfwing, Uchibe and Doya 2017, arXiv:1702.03118)."""
    return input * tap("gate", ops.sigmoid(input))
