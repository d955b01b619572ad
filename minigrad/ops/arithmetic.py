"""Sums, differences, products and quotients."""

from __future__ import annotations

from typing import Any

from minigrad.ops.edges import divide_unless_both_zero
from minigrad.ops.selection import where
from minigrad.primitive import primitive


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
