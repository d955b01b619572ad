"""Comparisons, logic and questions about numbers: the answers are booleans, which have no gradient."""

from __future__ import annotations

from minigrad.device import xp
from minigrad.engine.primitive import primitive


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


def _truth(x):
    """Where x is not 0; TypeError for None, which is not 0 either."""
    if x is None:
        raise TypeError("None is no operand; give tensors, arrays or numbers")
    return x != 0


@primitive(broadcasts=True)
def logical_and(x, y):
    """Whether both are true: what is not 0 is, NaN too."""
    return _truth(x) & _truth(y)


@primitive(broadcasts=True)
def logical_or(x, y):
    """Whether one of them is true, or both."""
    return _truth(x) | _truth(y)


@primitive
def logical_not(x):
    """Whether it is not true."""
    return x == 0


@primitive
def isnan(x):
    """Whether each element is not a number."""
    return xp(x).isnan(x)


@primitive
def isinf(x):
    """Whether each element is ∞ or -∞."""
    return xp(x).isinf(x)


@primitive
def isfinite(x):
    """Whether each element is a number, and neither ∞ nor -∞."""
    return xp(x).isfinite(x)


for _question in (equal, not_equal, less, less_equal, greater, greater_equal, logical_and, logical_or, logical_not,
                  isnan, isinf, isfinite):
    _question.no_gradient()
