"""Comparisons and logic: booleans, which have no gradient."""

from __future__ import annotations

from minigrad.primitive import primitive


@primitive(broadcasts=True)
def equal(x, y):
    return x == y


@primitive(broadcasts=True)
def not_equal(x, y):
    return x != y


@primitive(broadcasts=True)
def less(x, y):
    return x < y


@primitive(broadcasts=True)
def less_equal(x, y):
    return x <= y


@primitive(broadcasts=True)
def greater(x, y):
    return x > y


@primitive(broadcasts=True)
def greater_equal(x, y):
    return x >= y


@primitive
def logical_and(x, y):
    """``x & y`` on booleans."""
    return x & y


@primitive
def logical_or(x, y):
    """``x | y`` on booleans."""
    return x | y


@primitive
def logical_not(x):
    """``~x`` on booleans."""
    return ~x


for _comparison in (equal, not_equal, less, less_equal, greater, greater_equal, logical_and, logical_or, logical_not):
    _comparison.no_gradient()
