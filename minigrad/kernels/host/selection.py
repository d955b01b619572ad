"""Choosing between values on the host: products in place of ``np.where``, which is slow on scattered conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.engine.primitive import Primitive
from minigrad.kernels.bodies import FasterBody
from minigrad.ops.reduction import keep_reduced, max, min
from minigrad.ops.selection import clip, maximum, minimum, nan_to_num, relu, where

LARGE = 4096  # elements, from which on a product beats a choice


def keep_where(condition: Any, g: Any, holds: bool = True) -> Any:
    """``where(condition, g, 0)``, or, where it `holds` not, ``where(condition, 0, g)``, of host arrays.

    A product makes NaN of an infinite g. So large arrays are multiplied, and the product is returned if the sum of its
    squares is finite, which shows that every element is.
    """
    if g.size >= LARGE:
        with np.errstate(over="ignore", invalid="ignore"):  # the sum of squares shows what they would warn of
            product = g * (condition if holds else ~condition)
            flat = product.ravel("K")
            squares = np.dot(flat, flat)
        if math.isfinite(squares):
            return product
    return np.where(condition, g, 0.0) if holds else np.where(condition, 0.0, g)


def relu_of_rows(x):
    """Between arrays NumPy's maximum is vectorised, beside a number it is not: a row of zeros takes half the time."""
    return np.maximum(x, np.zeros(x.shape[-1:], x.dtype)) if x.size >= LARGE else np.maximum(x, 0)


def share(g: Any, wins: Any, ties: Any) -> Any:
    """g to the winner, half of it to each where the two tie: as a rule nowhere."""
    if not np.count_nonzero(ties):
        return keep_where(wins, g)
    return np.where(wins, g, np.where(ties, g * 0.5, 0.0))


def share_among_ties(g, x, out, axis, keepdims):
    attains = x == keep_reduced(out, x.shape, axis, keepdims)
    ties = attains.astype(g.dtype).sum(axis=axis, keepdims=True)
    return keep_where(attains, keep_reduced(g, x.shape, axis, keepdims) / ties)


def clip_gradient(g, x, min, max):
    if min is not None:
        g = keep_where(x >= min, g)
    return g if max is None else keep_where(x <= max, g)


def clip_gradient_of_min(g, x, min, max):
    below = x < min
    return keep_where(below if max is None else below & (min <= max), g)


def clip_gradient_of_max(g, x, min, max):
    raised = x if min is None else np.maximum(x, min)
    return keep_where(raised > max, g)


def on_host(*arguments: Any) -> bool:
    """Whether the arrays among the arguments are in host memory; those of one operation are all on one device."""
    return any(type(argument) is np.ndarray for argument in arguments)


def is_blas_float(x: Any, axis: Any, keepdims: Any) -> bool:
    """Whether x is a host array of float32 or float64."""
    return type(x) is np.ndarray and x.dtype.char in "fd"


def give_body(op: Primitive, forward: Callable[..., Any] | None = None, suits: Callable[..., bool] = on_host,
              **rules: Callable[..., Any]) -> None:
    """Register a body of `op` for host arrays: the forward of its definition if there is no other, and these rules."""
    body = FasterBody(op, forward or op.forward, suits, fresh=True)
    body.gradient(**rules)
    op.add_body(body)


def install() -> None:
    """Register the bodies."""
    give_body(where, x=lambda g, condition: keep_where(condition, g),
              y=lambda g, condition: keep_where(condition, g, False))
    give_body(relu, relu_of_rows, x=lambda g, out: keep_where(out > 0, g))
    give_body(maximum, x=lambda g, x, y: share(g, x > y, x == y), y=lambda g, x, y: share(g, y > x, x == y))
    give_body(minimum, x=lambda g, x, y: share(g, x < y, x == y), y=lambda g, x, y: share(g, y < x, x == y))
    give_body(clip, x=clip_gradient, min=clip_gradient_of_min, max=clip_gradient_of_max)
    give_body(nan_to_num, x=lambda g, x: keep_where(np.isfinite(x), g))
    give_body(max, suits=is_blas_float, x=share_among_ties)
    give_body(min, suits=is_blas_float, x=share_among_ties)
