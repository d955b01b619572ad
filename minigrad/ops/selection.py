"""Operations that choose between values. Where one has a kink, its docstring says which subgradient the rule takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device import xp
from minigrad.engine.primitive import primitive


@primitive(broadcasts=True, fresh=True)
def where(condition, x, y):
    """x where the condition holds, y elsewhere; all three broadcast. The condition is boolean and has no gradient.

    A condition that is a NumPy array is sent to the device of the tensors.
    """
    if not hasattr(condition, "dtype") or condition.dtype.kind != "b":
        kind = getattr(condition, "dtype", type(condition).__name__)
        raise TypeError(f"where: the condition must be a boolean tensor or array, got {kind}")
    if x is None or y is None:
        raise TypeError("where: cannot use None as an operand; give a Tensor, an array or a number")
    out = xp(condition).where(condition, x, y)
    only_numbers = not hasattr(x, "dtype") and not hasattr(y, "dtype")
    return out.astype(np.float32) if only_numbers and out.dtype.kind == "f" else out


where.gradient(x=lambda g, condition: where(condition, g, 0.0),
               y=lambda g, condition: where(condition, 0.0, g))
where.advise(condition="the condition must be boolean, such as x > 0")


@primitive(fresh=True)
def relu(x):
    """``max(x, 0)``; the gradient at 0 is 0, and passes where x is NaN."""
    return xp(x).maximum(x, 0)


relu.gradient(x=lambda g, out: where(out != 0, g, 0.0))  # positive, or NaN


@primitive(fresh=True)
def absolute(x):
    """``|x|``; the gradient at 0 is 0."""
    return xp(x).abs(x)


absolute.gradient(x=lambda g, x: g * sign(x))


@primitive
def sign(x):
    """-1, 0 or 1. No gradient."""
    return xp(x).sign(x)


sign.no_gradient()


@primitive(broadcasts=True, fresh=True)
def maximum(x, y):
    """The larger of x and y; where they are equal, each gets half of the gradient, where one is NaN both get it."""
    return xp(x if hasattr(x, "dtype") else y).maximum(x, y)


@primitive(broadcasts=True, fresh=True)
def minimum(x, y):
    """The smaller of x and y; where they are equal, each gets half of the gradient, where one is NaN both get it."""
    return xp(x if hasattr(x, "dtype") else y).minimum(x, y)


def _share(g: Any, loses: Any, ties: Any) -> Any:
    """Nothing to the loser, half of g to each where the two tie."""
    return where(loses, 0.0, where(ties, g * 0.5, g))


maximum.gradient(x=lambda g, x, y: _share(g, x < y, x == y),
                 y=lambda g, x, y: _share(g, y < x, x == y))
minimum.gradient(x=lambda g, x, y: _share(g, x > y, x == y),
                 y=lambda g, x, y: _share(g, y > x, x == y))


@primitive(broadcasts=True, fresh=True)
def clip(x, min=None, max=None):
    """x kept within [min, max], broadcasting; a bound is a number, a tensor, or None for no bound.

    On a bound the gradient goes to x, beyond it to the bound, and to both where one of them is NaN. Where min is above
    max, the result is max.
    """
    if min is None and max is None:
        raise ValueError("clip: give min, max or both")
    return xp(x).clip(x, min, max)


def clip_gradient(g, x, min, max):
    if min is not None:
        g = where(x < min, 0.0, g)
    return g if max is None else where(x > max, 0.0, g)


def clip_gradient_of_min(g, x, min, max):
    within = x >= min
    return where(within if max is None else within | (min > max), 0.0, g)


def clip_gradient_of_max(g, x, min, max):
    raised = x if min is None else maximum(x, min)
    return where(raised <= max, 0.0, g)


clip.gradient(x=clip_gradient, min=clip_gradient_of_min, max=clip_gradient_of_max)
