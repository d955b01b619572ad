"""Reductions. ``axis`` is None (all axes), an int or a tuple, as in NumPy; of a number 0 or -1, too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad.arguments import number
from minigrad.device import xp
from minigrad.device.sums import LONG, Axis, axis_of_number, normalize_axes, sum_over, widened
from minigrad.engine.primitive import primitive, public
from minigrad.ops.elementwise import equal, exp, has_no_zeros, isnan, sqrt, where
from minigrad.ops.shape import along_one_axis, flip


def reduction(name: str, documentation: str, floating: bool = False) -> Any:
    """The reduction that arrays have as a method of this name."""
    def forward(x, axis=None, keepdims=False):
        return getattr(x, name)(axis=axis if x.ndim else axis_of_number(axis), keepdims=keepdims)

    forward.__name__ = forward.__qualname__ = name
    forward.__doc__ = documentation
    return primitive(forward, floating=floating, fresh=not floating)


def keep_reduced(g: Any, shape: tuple[int, ...], axis: Axis, keepdims: bool) -> Any:
    """Put the reduced axes of `g` back, with length 1."""
    if keepdims or not shape:
        return g
    axes = normalize_axes(axis, len(shape))
    return g.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape)))


def reduced_size(shape: tuple[int, ...], axis: Axis) -> int:
    """How many elements go into each result of a reduction over `axis`."""
    return math.prod(shape[a] for a in normalize_axes(axis, len(shape)))


# --------------------------------------------------------------------------- sums and moments


@primitive
def sum(x, axis=None, keepdims=False):
    """The sum over `axis`."""
    return sum_over(x, axis, keepdims)


sum.gradient(x=lambda g, x_shape, axis, keepdims: _expand_reduced(g, x_shape, axis, keepdims))


@primitive
def _expand_reduced(x, shape, axis, keepdims):
    """x repeated along the axes that a sum over `axis` took out of `shape`: the transpose of summing is repeating."""
    if axis is not None:
        x = keep_reduced(x, shape, axis, keepdims)
    return xp(x).broadcast_to(x, shape)


_expand_reduced.gradient(x=lambda g, axis, keepdims: sum_over(g, axis, keepdims))


@primitive(floating=True)
def mean(x, axis=None, keepdims=False):
    """The mean over `axis`; integers give float32."""
    return sum_over(x, axis, keepdims, "mean")


mean.gradient(x=lambda g, x_shape, axis, keepdims:
              _expand_reduced(widened(g) / reduced_size(x_shape, axis), x_shape, axis, keepdims))


@primitive(floating=True, fresh=True)
def var(x, axis=None, correction=0, keepdims=False):
    """The variance over `axis`, ``Σ(x - mean)² / max(n - correction, 0)``. NumPy's default: correction 0.

    Where ``n ≤ correction``, it divides by 0, with a warning, as NumPy and PyTorch do: of one element it is NaN.
    """
    wide = widened(x)
    centered = wide - sum_over(wide, axis, True, "mean")
    degrees = reduced_size(x.shape, axis) - number(correction, "correction", "var")
    variance = sum_over(centered * centered, axis, keepdims) / (degrees if degrees > 0 else 0)
    return variance.astype(x.dtype, copy=False)


# d var / dxᵢ = 2 (xᵢ - mean) / (n - correction): the dependence through the mean cancels, as Σ(x - mean) = 0.
def var_gradient(g, x, x_shape, axis, correction, keepdims):
    x, degrees = widened(x), reduced_size(x_shape, axis) - correction
    slope = (x - mean(x, axis, True)) / (degrees / 2 if degrees > 0 else 0)
    return _expand_reduced(g, x_shape, axis, keepdims) * slope


var.gradient(x=var_gradient)


@public
def std(x: Any, axis: Axis = None, correction: int = 0, keepdims: bool = False) -> Any:
    """The standard deviation over `axis`, ``√var``. NumPy's default: correction 0.

    Where it is 0, and its slope infinite, its gradient is 0: the constant element has no direction to move in first.
    """
    return root(var(widened(x), axis, correction, keepdims), x)


@public
def norm(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The length of the vectors along `axis`, ``√Σ x²``; its gradient at the zero vector, a kink, is 0."""
    wide = widened(x)
    return root(sum(wide * wide, axis, keepdims), x)


def root(x: Any, like: Any) -> Any:
    """``√x``, where the gradient at 0 is 0, to every order; in float16 if `like` is."""
    zero = equal(x, 0)
    out = where(zero, 0.0, sqrt(where(zero, 1.0, x)))
    return out.astype(like.dtype) if like.dtype.char == "e" else out


@public
def cumsum(x: Any, axis: int | None = None) -> Any:
    """The running sum along `axis`; of the flattened x if it is None, as in NumPy."""
    return along_one_axis(_cumsum, x, axis)


@primitive(fresh=True)
def _cumsum(x, axis):
    if x.dtype.char == "e" or (type(x) is np.ndarray and x.dtype.char == "f" and x.size > LONG):  # as `sum_over`
        return x.cumsum(axis=axis, dtype=np.float64).astype(x.dtype)
    return x.cumsum(axis=axis)


# outⱼ = Σ_{i≤j} xᵢ, so dxᵢ = Σ_{j≥i} gⱼ: the running sum from the other end.
_cumsum.gradient(x=lambda g, axis: flip(_cumsum(flip(g, axis), axis), axis))


@primitive(floating=True, fresh=True)
def logsumexp(x, axis=None, keepdims=False):
    """``log Σ eˣ`` over `axis`, without overflow: the maximum is taken out first.

    All -inf gives -inf, gradient 0, and so does an empty axis. Elements that are ∞ share the gradient equally.
    """
    namespace, axis, dtype = xp(x), axis if x.ndim else axis_of_number(axis), x.dtype
    if not x.size:  # Σ eˣ over no elements is 0
        return x.sum(axis=axis, keepdims=keepdims) - namespace.inf
    x = widened(x)
    top = x.max(axis=axis, keepdims=True)
    top = namespace.where(namespace.isfinite(top), top, 0)
    total = sum_over(namespace.exp(x - top), axis, True)
    # log 0 = -inf is the answer for a row of -inf; it is written so that NumPy has nothing to warn of.
    logarithm = namespace.where(total == 0, -namespace.inf, namespace.log(namespace.where(total == 0, 1, total)))
    out = (logarithm + top).astype(dtype, copy=False)
    return out if keepdims else out.sum(axis=axis)  # over axes of length 1: only their removal


# d logsumexp / dx = softmax(x) = exp(x - logsumexp(x))
def logsumexp_gradient(g, x, out, axis, keepdims):
    g, out = (keep_reduced(v, x.shape, axis, keepdims) for v in (g, out))
    if not has_no_zeros(out != math.inf):  # beside ∞ all else counts for nothing, and x - out would be ∞ - ∞
        x = where(out == math.inf, where(x == math.inf, 0.0, -math.inf), x)
        out = logsumexp(x, axis, True)
    return g * exp(x - where(out == -math.inf, 0.0, out))


logsumexp.gradient(x=logsumexp_gradient)

# --------------------------------------------------------------------------- extremes, and answers without a gradient

max = reduction("max", "The maximum over `axis`; elements that tie, or are NaN, share the gradient equally.")
min = reduction("min", "The minimum over `axis`; elements that tie, or are NaN, share the gradient equally.")


def share_among_ties(g: Any, x: Any, out: Any, axis: Axis, keepdims: bool) -> Any:
    """Where several elements attain the extreme value they share its gradient equally (a subgradient)."""
    attains = equal(x, keep_reduced(out, x.shape, axis, keepdims)) | isnan(x)
    g = widened(g)
    ties = sum(attains.astype(g.dtype), axis, True)
    return where(attains, keep_reduced(g, x.shape, axis, keepdims) / ties, 0.0)


max.gradient(x=share_among_ties)
min.gradient(x=share_among_ties)

argmax = reduction("argmax", "The index of the (first) maximum along `axis`, int64. No gradient.").no_gradient()
argmin = reduction("argmin", "The index of the (first) minimum along `axis`, int64. No gradient.").no_gradient()
any = reduction("any", "Whether any element is true. No gradient.").no_gradient()
all = reduction("all", "Whether all elements are true. No gradient.").no_gradient()
