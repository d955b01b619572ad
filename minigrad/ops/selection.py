"""Operations that choose between values. Where one has a kink, its docstring says which subgradient the rule takes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.comparison import isfinite
from minigrad.ops.rounding import sign


@primitive(broadcasts=True)
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


def keep_where(condition: Any, g: Any, holds: bool = True) -> Any:
    """``where(condition, g, 0)``, or, where it `holds` not, ``where(condition, 0, g)``; for rules.

    NumPy's ``where`` is slow on scattered conditions, and a product is not; but a product makes NaN of an infinite g.
    So large host arrays are multiplied, and the product holds if the sum of its squares shows that it is finite.
    """
    if type(g) is np.ndarray and g.size >= 4096:
        with np.errstate(over="ignore", invalid="ignore"):  # what they would warn of is looked at here
            product = g * (condition if holds else ~condition)
            flat = product.ravel("K")
            squares = np.dot(flat, flat)
        if math.isfinite(squares):
            return product
    choose = where if type(g) is not np.ndarray else np.where
    return choose(condition, g, 0.0) if holds else choose(condition, 0.0, g)


where.gradient(x=lambda g, condition: keep_where(condition, g),
               y=lambda g, condition: keep_where(condition, g, False))
where.advise(condition="the condition must be boolean, such as x > 0")


@primitive
def relu(x):
    """``max(x, 0)``; the gradient at 0 is 0."""
    if type(x) is np.ndarray and x.size >= 4096:
        # Between arrays NumPy's maximum is vectorised, beside a number it is not: a row of zeros takes half the time.
        return np.maximum(x, np.zeros(x.shape[-1:], x.dtype))
    return xp(x).maximum(x, 0)


relu.gradient(x=lambda g, out: keep_where(out > 0, g))


@primitive
def absolute(x):
    """``|x|``; the gradient at 0 is 0."""
    return xp(x).abs(x)


absolute.gradient(x=lambda g, x: g * sign(x))


@primitive(broadcasts=True)
def maximum(x, y):
    """The larger of x and y; where they are equal, each gets half of the gradient."""
    return xp(x if hasattr(x, "dtype") else y).maximum(x, y)


@primitive(broadcasts=True)
def minimum(x, y):
    """The smaller of x and y; where they are equal, each gets half of the gradient."""
    return xp(x if hasattr(x, "dtype") else y).minimum(x, y)


def _share(g: Any, wins: Any, ties: Any) -> Any:
    if type(ties) is np.ndarray and not np.count_nonzero(ties):  # the usual case, and host memory
        return keep_where(wins, g)
    return where(wins, g, where(ties, g * 0.5, 0.0))


maximum.gradient(x=lambda g, x, y: _share(g, x > y, x == y),
                 y=lambda g, x, y: _share(g, y > x, x == y))
minimum.gradient(x=lambda g, x, y: _share(g, x < y, x == y),
                 y=lambda g, x, y: _share(g, y < x, x == y))


@primitive(broadcasts=True)
def clip(x, min=None, max=None):
    """x kept within [min, max], broadcasting; a bound is a number, a tensor, or None for no bound.

    On a bound the gradient goes to x, beyond it to the bound. Where min is above max, the result is max.
    """
    if min is None and max is None:
        raise ValueError("clip: give min, max or both")
    return xp(x).clip(x, min, max)


def clip_gradient(g, x, min, max):
    if min is not None:
        g = keep_where(x >= min, g)
    return g if max is None else keep_where(x <= max, g)


def clip_gradient_of_min(g, x, min, max):
    below = x < min
    return keep_where(below if max is None else below & (min <= max), g)


def clip_gradient_of_max(g, x, min, max):
    raised = x if min is None else maximum(x, min)
    return keep_where(raised > max, g)


clip.gradient(x=clip_gradient, min=clip_gradient_of_min, max=clip_gradient_of_max)


@primitive
def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    """x with the numbers `nan`, `posinf` and `neginf` in place of NaN, ∞ and -∞.

    By default they are 0 and the largest and the smallest number of x's dtype. Where x was not finite its gradient
    is 0.
    """
    return xp(x).nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


nan_to_num.gradient(x=lambda g, x: keep_where(isfinite(x), g))
