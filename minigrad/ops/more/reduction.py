"""Variances, products and norms over axes."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from minigrad.arguments import number, public
from minigrad.device.sums import mean_over, sum_over, widened
from minigrad.engine.primitive import primitive
from minigrad.ops.comparison import equal, not_equal
from minigrad.ops.exponential import power, sqrt
from minigrad.ops.more.scan import cumprod, delay
from minigrad.ops.more.shape import flip
from minigrad.ops.reduction import (
    Axis,
    axis_in,
    expand_reduced,
    keep_reduced,
    max,
    mean,
    min,
    normalize_axes,
    reduced_size,
    sum,
)
from minigrad.ops.selection import absolute, where
from minigrad.ops.shape import inverse_permutation, require_arrays, reshape, transpose


@primitive(floating=True, fresh=True)
def var(x, axis=None, correction=0, keepdims=False):
    """The variance over `axis`, ``Σ(x - mean)² / max(n - correction, 0)``. NumPy's default: correction 0.

    Where ``n ≤ correction``, it divides by 0, with a warning, as NumPy and PyTorch do: of one element it is NaN.
    """
    axis, wide = axis_in(x, axis), widened(x)
    degrees = reduced_size(x.shape, axis) - number(correction, "correction", "var")
    centered = wide - mean_over(wide, axis, True)
    variance = sum_over(centered * centered, axis, keepdims) / (degrees if degrees > 0 else 0)
    return variance.astype(x.dtype, copy=False)


# d var / dxᵢ = 2 (xᵢ - mean) / (n - correction): the dependence through the mean cancels, as Σ(x - mean) = 0.
def var_gradient(g, x, x_shape, axis, correction, keepdims):
    x, degrees = widened(x), reduced_size(x_shape, axis) - correction
    slope = (x - mean(x, axis, True)) / (degrees / 2 if degrees > 0 else 0)
    return expand_reduced(g, x_shape, axis, keepdims) * slope


var.gradient(x=var_gradient)


@public
def std(x: Any, axis: Axis = None, correction: int = 0, keepdims: bool = False) -> Any:
    """The standard deviation over `axis`, ``√var``. NumPy's default: correction 0.

    Where it is 0, and its slope infinite, its gradient is 0: the constant element has no direction to move in first.
    """
    if getattr(x, "dtype", None) == np.float16:  # a variance is beyond 65504 long before its root is
        return std(x.astype(np.float32), axis, correction, keepdims).astype(np.float16)
    return root(var(x, axis, correction, keepdims))


def root(x: Any) -> Any:
    """``√x``, where the gradient at 0 is 0, to every order."""
    zero = equal(x, 0)
    return where(zero, 0.0, sqrt(where(zero, 1.0, x)))


@primitive(fresh=True)
def prod(x, axis=None, keepdims=False):
    """The product over `axis`. Its gradient divides by nothing, and so is right beside zeros, to every order."""
    return x.prod(axis=axis_in(x, axis), keepdims=keepdims)


def prod_gradient(g, x, axis, keepdims):
    # forward: the product of all     so here: for each the product of the others, those before it times those after it
    rows = axes_last(x, axis)
    before = cumprod(delay(rows, -1, 1.0), -1)
    after = flip(cumprod(delay(flip(rows, -1), -1, 1.0), -1), -1)
    return keep_reduced(g, x.shape, axis, keepdims) * axes_back(before * after, x.shape, axis)


prod.gradient(x=prod_gradient)


def axes_last(x: Any, axis: Axis) -> Any:
    """The axes of a reduction as one, the last: ``(…, n)``."""
    order, kept = _kept_first(len(x.shape), axis)
    shape = tuple(x.shape[a] for a in order)
    return reshape(transpose(x, order), (*shape[:kept], math.prod(shape[kept:])))


def axes_back(rows: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    """What `axes_last` has made of `shape`, in that shape again."""
    order, _ = _kept_first(len(shape), axis)
    return transpose(reshape(rows, tuple(shape[a] for a in order)), inverse_permutation(order))


def _kept_first(ndim: int, axis: Axis) -> tuple[tuple[int, ...], int]:
    """The axes that a reduction keeps, then those that it reduces; and how many it keeps."""
    reduced = normalize_axes(axis, ndim)
    kept = tuple(a for a in range(ndim) if a not in reduced)
    return kept + reduced, len(kept)


# --------------------------------------------------------------------------- norms of vectors


@public
def norm(x: Any, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Any:
    """The norm of the vectors along `axis`.

    By `ord`:

    - None, ``"fro"``: ``√Σ x²`` over all of `axis`: of matrices the Frobenius norm
    - 2: the same, of vectors
    - inf, -inf: ``max |x|`` and ``min |x|``; elements that tie share the gradient equally
    - 0: how many elements are not 0; has no gradient
    - another p: ``(Σ |x|ᵖ)^(1/p)``, as ``Σ |x|`` for p = 1

    The gradient at the zero vector, where a norm has a kink, is 0 (as in PyTorch); for 0 < p < 1 so is that of an
    element that is 0, and for p < 0 that of all, if one of them is 0. The norm of a number is its absolute value.
    float16 is summed in float32.

    Args:
        axis: None for all elements, an int or a tuple. A norm with a number for `ord` is one of vectors: over one axis,
            or over all elements of a 1-D x.

    Raises:
        ValueError: another `ord`; a number for it and more than one axis, which NumPy takes for a matrix norm.
        IndexError: an axis that x lacks.
    """
    require_arrays("norm", x)
    of_vectors = isinstance(ord, numbers.Real) and ord == ord
    if not of_vectors and ord not in (None, "fro"):
        raise ValueError(f"norm: ord must be None, 'fro' or a number, got {ord!r}")
    axes = normalize_axes(axis, len(x.shape))
    if of_vectors and x.shape and len(axes) != 1:
        raise ValueError(f"norm: ord {ord} with {len(axes)} axes of shape {tuple(x.shape)} would be a matrix norm, of "
                         "which there is the Frobenius norm alone (ord None); for a norm of vectors give one axis")
    if x.dtype == np.float16:
        return norm(x.astype(np.float32), ord, axis, keepdims).astype(np.float16)
    return _norm(x * 1.0 if x.dtype.kind != "f" else x, ord if of_vectors else 2, axis, keepdims)


def _norm(x: Any, p: Any, axis: Axis, keepdims: bool) -> Any:
    if p == 2:
        return root(sum(x * x, axis, keepdims))
    if math.isinf(p):
        return (max if p > 0 else min)(absolute(x), axis, keepdims)
    if p == 0:
        return sum(not_equal(x, 0).astype(x.dtype), axis, keepdims)
    if p == 1:
        return sum(absolute(x), axis, keepdims)
    size = absolute(x)
    if 0 < p < 1:  # the slope of |x|ᵖ at 0 is infinite on both sides
        powers = where(equal(x, 0), 0.0, power(where(equal(x, 0), 1.0, size), p))
    else:
        powers = power(size, p)
    total = sum(powers, axis, keepdims)
    zero = equal(total, 0 if p > 0 else math.inf)
    return where(zero, 0.0, power(where(zero, 1.0, total), 1 / p))
