"""Sums, running sums, means and variances of many terms, in blocks.

`minigrad.device.sums` says how. They are more precise than the definitions; so they run where a gradient is recorded,
too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device.sums import LONG, loses_digits, running_sums, sum_over, wide_sum_over
from minigrad.kernels.bodies import add_body
from minigrad.ops.reduction import _cumsum, _expand_reduced, mean, reduced_size, sum, var
from minigrad.ops.shape import flip


def suits(x, axis, keepdims):
    """It takes sums in which NumPy would add more than 2048 terms one after the other."""
    return type(x) is np.ndarray and x.size > LONG and loses_digits(x, axis)


def mean_of(x: Any, axis: Any, keepdims: bool) -> Any:
    """The mean over `axis` of an array on any device."""
    if not loses_digits(x, axis):
        return x.mean(axis=axis, keepdims=keepdims)
    return (wide_sum_over(x, axis, keepdims) / reduced_size(x.shape, axis)).astype(x.dtype)


def suits_var(x, axis, correction, keepdims):
    """It takes float32 and float64, where NumPy would add more than 2048 terms one after the other."""
    return (isinstance(correction, int | float) and correction < LONG and loses_digits(x, axis)
            and x.dtype.char != "e")  # whose squares may be beyond its end


def var_of(x: Any, axis: Any, correction: float, keepdims: bool) -> Any:
    """The variance over `axis` of an array on any device."""
    if not suits_var(x, axis, correction, keepdims):
        return var.forward(x, axis, correction, keepdims)
    centered = x - mean_of(x, axis, True)
    centered *= centered
    return (wide_sum_over(centered, axis, keepdims) / (reduced_size(x.shape, axis) - correction)).astype(x.dtype)


def var_gradient(g: Any, x: Any, axis: Any, correction: float, keepdims: bool) -> Any:
    slope = g * (2 / (reduced_size(x.shape, axis) - correction))
    return _expand_reduced(slope, x.shape, axis, keepdims) * (x - mean_of(x, axis, True))


def suits_cumsum(x, axis):
    """It takes float32 in host memory, along an axis of more than 2048 elements."""
    return (type(x) is np.ndarray and x.dtype.char == "f" and x.size > LONG and type(axis) is int
            and -x.ndim <= axis < x.ndim and x.shape[axis] > LONG)


def cumsum_of(x: Any, axis: int) -> Any:
    """The running sums along `axis` of an array on any device."""
    return running_sums(x, axis) if suits_cumsum(x, axis) else _cumsum.forward(x, axis)


def cumsum_gradient(g: Any, axis: int) -> Any:
    return flip(cumsum_of(flip(g, axis), axis), axis)


add_body(sum, suits, sum_over, "precise")
add_body(mean, suits, mean_of, "precise")
add_body(var, suits_var, var_of, "precise", x=var_gradient)
add_body(_cumsum, suits_cumsum, running_sums, "precise", x=cumsum_gradient)
