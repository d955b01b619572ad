"""Reductions. ``axis`` is None (all axes), an int or a tuple, as in NumPy; of a number 0 or -1, too."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from minigrad.device import xp
from minigrad.device.sums import mean_over, sum_over, widened
from minigrad.engine.primitive import primitive
from minigrad.ops.comparison import equal, isnan
from minigrad.ops.edges import has_no_zeros
from minigrad.ops.exponential import exp
from minigrad.ops.selection import where

Axis = int | tuple[int, ...] | None


@primitive
def sum(x, axis=None, keepdims=False):
    """The sum over `axis`."""
    return sum_over(x, axis_in(x, axis), keepdims)


sum.gradient(x=lambda g, x_shape, axis, keepdims: expand_reduced(g, x_shape, axis, keepdims))


@primitive
def expand_reduced(x, shape, axis, keepdims):
    """x repeated along the axes that a sum over `axis` took out of `shape`: the transpose of summing is repeating."""
    if axis is not None:
        x = keep_reduced(x, shape, axis, keepdims)
    return xp(x).broadcast_to(x, shape)


expand_reduced.gradient(x=lambda g, axis, keepdims: sum_over(g, axis, keepdims))


def keep_reduced(g: Any, shape: tuple[int, ...], axis: Axis, keepdims: bool) -> Any:
    """Put the reduced axes of `g` back, with length 1."""
    if keepdims or not shape:
        return g
    axes = normalize_axes(axis, len(shape))
    return g.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape)))


def normalize_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The axes as a sorted tuple of distinct non-negative ints; IndexError for one that does not exist.

    TypeError, NumPy's, for what is neither an int nor a tuple.
    """
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (operator.index(axis),)
    most = ndim or 1  # a number has axis 0, as in NumPy, of which nothing is left
    for a in axes:
        if not -most <= a < most:
            raise IndexError(f"axis {a} is out of range for {ndim} dimensions")
    normal = sorted({a % most for a in axes})
    if len(normal) != len(tuple(axes)):
        raise ValueError(f"axis {axis} names a dimension twice")
    return tuple(normal) if ndim else ()


def axis_in(x: Any, axis: Axis) -> Axis:
    """`axis`; of a number, which has no axes, () for 0, -1 and None, which CuPy refuses, and IndexError for another."""
    return axis if x.ndim else normalize_axes(axis, 0)


def reduced_size(shape: tuple[int, ...], axis: Axis) -> int:
    """How many elements go into each result of a reduction over `axis`."""
    return math.prod(shape[a] for a in normalize_axes(axis, len(shape)))


@primitive(floating=True)
def mean(x, axis=None, keepdims=False):
    """The mean over `axis`; integers give float32."""
    return mean_over(x, axis_in(x, axis), keepdims)


mean.gradient(x=lambda g, x_shape, axis, keepdims:
              expand_reduced(widened(g) / reduced_size(x_shape, axis), x_shape, axis, keepdims))


@primitive(fresh=True)
def max(x, axis=None, keepdims=False):
    """The maximum over `axis`; elements that tie for it share the gradient equally, as do those that are NaN."""
    return x.max(axis=axis_in(x, axis), keepdims=keepdims)


@primitive(fresh=True)
def min(x, axis=None, keepdims=False):
    """The minimum over `axis`; elements that tie for it share the gradient equally, as do those that are NaN."""
    return x.min(axis=axis_in(x, axis), keepdims=keepdims)


def _share_among_ties(g: Any, x: Any, out: Any, axis: Axis, keepdims: bool) -> Any:
    """Where several elements attain the extreme value they share its gradient equally (a subgradient)."""
    attains = equal(x, keep_reduced(out, x.shape, axis, keepdims)) | isnan(x)
    g = widened(g)
    ties = sum(attains.astype(g.dtype), axis, True)
    return where(attains, keep_reduced(g, x.shape, axis, keepdims) / ties, 0.0)


max.gradient(x=_share_among_ties)
min.gradient(x=_share_among_ties)


@primitive(floating=True, fresh=True)
def logsumexp(x, axis=None, keepdims=False):
    """``log Σ eˣ`` over `axis`, without overflow: the maximum is taken out first.

    All -inf gives -inf, gradient 0, and so does an empty axis. Elements that are ∞ share the gradient equally.
    """
    namespace, axis, dtype = xp(x), axis_in(x, axis), x.dtype
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


def _search(found: Callable[..., Any], x: Any, axis: Axis, keepdims: bool) -> Any:
    """``x.argmax`` or ``x.argmin`` along `axis`, which is put back with length 1 if `keepdims`."""
    if not x.ndim:
        axis = axis_in(x, axis) or None
    indices = found(axis=axis)
    if not keepdims:
        return indices
    return indices.reshape((1,) * x.ndim) if axis is None else xp(x).expand_dims(indices, axis)


@primitive
def argmax(x, axis=None, keepdims=False):
    """The index of the (first) maximum along `axis`, int64. Has no gradient."""
    return _search(x.argmax, x, axis, keepdims)


@primitive
def argmin(x, axis=None, keepdims=False):
    """The index of the (first) minimum along `axis`, int64. Has no gradient."""
    return _search(x.argmin, x, axis, keepdims)


@primitive
def any(x, axis=None, keepdims=False):
    """Whether any element is true. Has no gradient."""
    return x.any(axis=axis_in(x, axis), keepdims=keepdims)


@primitive
def all(x, axis=None, keepdims=False):
    """Whether all elements are true. Has no gradient."""
    return x.all(axis=axis_in(x, axis), keepdims=keepdims)


for _index in (argmax, argmin, any, all):
    _index.no_gradient()
