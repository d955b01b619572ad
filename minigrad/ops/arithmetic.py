"""Sums, differences, products and quotients.

With ``out = f(x)`` element by element, the Jacobian is diagonal, and the rule is ``g · f'(x)``.
"""

from __future__ import annotations

from typing import Any

from minigrad.engine.primitive import primitive
from minigrad.ops.edges import has_no_zeros, product, quotient


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


@primitive(broadcasts=True, fresh=True)
def mul(x, y):
    """``x * y``, broadcasting."""
    return x * y


mul.gradient(x=lambda g, y: g * y,
             y=lambda g, x: g * x)


@primitive(broadcasts=True, floating=True, fresh=True)
def div(x, y):
    """``x / y``, broadcasting; integers give float32. A gradient of exactly 0 stays 0 at y = 0."""
    return x / y


div.gradient(x=lambda g, y: g / y if has_no_zeros(y) else quotient(g, y, y != 0),
             y=lambda g, y, out: by_quotient(g, y, out))


def by_quotient(g: Any, y: Any, out: Any) -> Any:
    """``-g · out / y``, where ``out = x / y``; but 0 where g and y are both 0, although ``out`` is infinite there."""
    return -g * out / y if has_no_zeros(y) else -quotient(product(g, out), y, y != 0)


@primitive(fresh=True)
def neg(x):
    """``-x``."""
    return -x


neg.gradient(x=lambda g: -g)


@primitive(fresh=True)
def square(x):
    """``x²``."""
    return x * x


square.gradient(x=lambda g, x: g * x * 2)
