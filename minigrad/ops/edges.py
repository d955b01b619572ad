"""What a rule does with a gradient of exactly 0 where the slope is infinite or not a number.

``where(x > 0, log(x), 0)`` sends a gradient of 0 to the logarithms of what is not positive, and ``0 · ∞`` would make it
NaN. **By convention a gradient of exactly 0 stays 0**: at a pole (``1/x`` at 0), where a slope is infinite (``sqrt`` at
0), and outside the domain (``log`` at -1); to every order. It is the value of the product that the convention sets. The
derivative with respect to the gradient is the slope itself, ∞ or NaN, which is what `minigrad.func.jvp` finds.

A rule sees the gradient, not where it comes from. That of the root in ``sqrt(x)**2`` at 0 is 0 as well, and so is the
result, though the derivative is 1: as a limit, 0 · ∞ may be any number. No rule can tell the two apart; where a factor
vanishes as fast as the slope grows, write the function without them. docs/gradients/elementwise.md has a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.device import xp
from minigrad.engine.primitive import primitive


def has_no_zeros(x: Any) -> bool:
    """Whether x is True, or an array in host memory without a 0 or a False.

    It is not checked on a GPU, where the check would synchronise, nor of a tensor.
    """
    return x is True or (isinstance(x, (np.ndarray, np.generic)) and np.count_nonzero(x) == x.size)


def quotient(g: Any, x: Any, regular: Any) -> Any:
    """``g / x``, but 0 where g is exactly 0 and x is not `regular`."""
    return g / x if has_no_zeros(regular) else kept_quotient(g, x, regular)  # the usual case, or an edge


@primitive(broadcasts=True, fresh=True)
def kept_quotient(dividend, x, regular):
    """`quotient` as an operation, so that it can be differentiated again."""
    return dividend / xp(dividend).where((dividend != 0) | regular, x, dividend.dtype.type(1))


kept_quotient.gradient(
    dividend=lambda g, x, regular: quietly(quotient, g, x, regular),
    x=lambda g, dividend, x, regular: -quotient(quotient(_product(g, dividend), x, regular), x, regular))


@primitive(broadcasts=True, fresh=True)
def _product(x, y):
    """``x · y``, but 0 where one of them is exactly 0, whatever the other is."""
    return xp(x).where(y == 0, 0, x) * xp(x).where(x == 0, 0, y)


_product.gradient(x=lambda g, y: _product(g, y),
                  y=lambda g, x: _product(g, x))


def quietly(function: Callable[..., Any], *operands: Any) -> Any:
    """A slope, ``function(*operands)``, that may be infinite or not a number, without a warning."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return function(*operands)
