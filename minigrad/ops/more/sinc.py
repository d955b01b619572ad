"""The cardinal sine, whose quotients lose their digits near 0 and do not exist at 0: its derivatives are computed anew.

With u = πx and s(u) = sin u / u, the n-th derivative of s obeys ``u s⁽ⁿ⁾ + n s⁽ⁿ⁻¹⁾ = sin⁽ⁿ⁾ u``, which is exact far
from 0, and has a power series, which is exact near 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad.device import xp
from minigrad.engine.primitive import primitive

TERMS = 20  # of the series, which is used up to |u| = n + 1


@primitive(floating=True, fresh=True)
def sinc(x):
    """``sin(πx) / (πx)``, and 1 at 0: as in NumPy. Its gradients are right at 0 and near it, to every order."""
    return xp(x).sinc(x)


@primitive(floating=True, fresh=True)
def sinc_derivative(x, order):
    """The derivative of `sinc` of that order, at least 1."""
    namespace = xp(x)
    u = np.pi * (x.astype(np.float32) if x.dtype == np.float16 else x)
    near = abs(u) < order + 1
    small, large = namespace.where(near, u, 0), namespace.where(near, 1, u)
    value = namespace.sin(large) / large
    for n in range(1, order + 1):
        value = (namespace.sin(large + n * (np.pi / 2)) - n * value) / large
    return (np.pi**order * namespace.where(near, _series(small, order), value)).astype(x.dtype)


def _series(u: Any, n: int) -> Any:
    """``s⁽ⁿ⁾(u) = Σₖ (-1)ᵏ u²ᵏ⁻ⁿ / ((2k - n)! (2k + 1))``, for 2k from n on, by Horner's rule in u²."""
    first = (n + 1) // 2
    total = u * 0
    for k in range(first + TERMS, first - 1, -1):
        total = total * (u * u) + (-1) ** k / (math.factorial(2 * k - n) * (2 * k + 1))
    return total * u if n % 2 else total


sinc.gradient(x=lambda g, x: g * sinc_derivative(x, 1))
sinc_derivative.gradient(x=lambda g, x, order: g * sinc_derivative(x, order + 1))
