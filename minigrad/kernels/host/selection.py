"""Choosing between values on the host: products in place of ``np.where``, which is slow on scattered conditions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad.device.sums import sum_over
from minigrad.kernels.bodies import add_body, on_host
from minigrad.ops.elementwise import clip, maximum, minimum, relu, where
from minigrad.ops.reduction import keep_reduced, max, min

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


def share(g: Any, loses: Any, ties: Any) -> Any:
    """Nothing to the loser, half of g to each where the two tie: as a rule nowhere."""
    if not np.count_nonzero(ties):
        return keep_where(loses, g, False)
    return np.where(loses, 0.0, np.where(ties, g * 0.5, g))


def share_among_ties(g, x, out, axis, keepdims):
    attains = (x == keep_reduced(out, x.shape, axis, keepdims)) | np.isnan(x)
    ties = sum_over(attains.astype(g.dtype), axis, True)
    return keep_where(attains, keep_reduced(g, x.shape, axis, keepdims) / ties)


def clip_gradient(g, x, min, max):
    if min is not None:
        g = keep_where(x < min, g, False)
    return g if max is None else keep_where(x > max, g, False)


def clip_gradient_of_min(g, x, min, max):
    within = x >= min
    return keep_where(within if max is None else within | (min > max), g, False)


def clip_gradient_of_max(g, x, min, max):
    raised = x if min is None else np.maximum(x, min)
    return keep_where(raised <= max, g, False)


add_body(where, on_host, x=lambda g, condition: keep_where(condition, g),
         y=lambda g, condition: keep_where(condition, g, False))
add_body(relu, on_host, relu_of_rows, x=lambda g, out: keep_where(out != 0, g))
add_body(maximum, on_host, x=lambda g, x, y: share(g, x < y, x == y), y=lambda g, x, y: share(g, y < x, x == y))
add_body(minimum, on_host, x=lambda g, x, y: share(g, x > y, x == y), y=lambda g, x, y: share(g, y > x, x == y))
add_body(clip, on_host, x=clip_gradient, min=clip_gradient_of_min, max=clip_gradient_of_max)
add_body(max, on_host, x=share_among_ties)
add_body(min, on_host, x=share_among_ties)
