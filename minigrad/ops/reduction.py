"""Reductions. ``axis`` is None (all axes), an int or a tuple, as in NumPy.

float16 counts to 65504 only, and its sums lose digits long before. Sums, means, variances and what is shared out by a
count are therefore computed in float32 and rounded once: a result that float16 can hold is found. (NumPy does so for
the mean alone.) A sum that float16 cannot hold is inf, as in NumPy.
"""

from __future__ import annotations

import math
from typing import Any

from minigrad.arguments import public
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.comparison import equal
from minigrad.ops.exponential import exp
from minigrad.ops.powers import sqrt
from minigrad.ops.scan import cumprod, delay
from minigrad.ops.selection import keep_where, where
from minigrad.ops.shape import broadcast_to, flip, inverse_permutation, reshape, transpose
from minigrad.precision.half import HALF, SINGLE, total

Axis = int | tuple[int, ...] | None


def normalize_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The axes as a sorted tuple of distinct non-negative ints; IndexError for one that does not exist."""
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if not -ndim <= a < ndim:
            raise IndexError(f"axis {a} is out of range for {ndim} dimensions")
    normal = sorted({a % ndim for a in axes}) if ndim else []
    if len(normal) != len(tuple(axes)):
        raise ValueError(f"axis {axis} names a dimension twice")
    return tuple(normal)


def keep_reduced(g: Any, shape: tuple[int, ...], axis: Axis, keepdims: bool) -> Any:
    """Put the reduced axes of `g` back, with length 1."""
    if keepdims or not shape:
        return g
    axes = normalize_axes(axis, len(shape))
    return reshape(g, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def expand_reduced(g: Any, shape: tuple[int, ...], axis: Axis, keepdims: bool) -> Any:
    """Spread the gradient of a sum back over the axes that were summed: the transpose of summing is repeating."""
    return broadcast_to(keep_reduced(g, shape, axis, keepdims), shape)


def reduced_size(shape: tuple[int, ...], axis: Axis) -> int:
    """How many elements go into each result of a reduction over `axis`."""
    return math.prod(shape[a] for a in normalize_axes(axis, len(shape)))


def widened(x: Any) -> Any:
    """x, in float32 if it is float16."""
    return x.astype(SINGLE) if x.dtype == HALF else x


def as_narrow(out: Any, x: Any) -> Any:
    """`out`, in float16 if x is: what `widened` has begun ends with it."""
    return out.astype(HALF) if x.dtype == HALF else out


def divide_by_count(g: Any, count: Any) -> Any:
    """``g / count`` in the dtype of g, also where that is float16 and the count, above 65504, is not."""
    return as_narrow(widened(g) / count, g)


@primitive
def sum(x, axis=None, keepdims=False):
    """The sum over `axis`."""
    return total(x, axis, keepdims)


sum.gradient(x=lambda g, x_shape, axis, keepdims: expand_reduced(g, x_shape, axis, keepdims))


@primitive(floating=True)
def mean(x, axis=None, keepdims=False):
    """The mean over `axis`; integers give float32."""
    return x.mean(axis=axis, keepdims=keepdims)


mean.gradient(x=lambda g, x_shape, axis, keepdims:
              expand_reduced(divide_by_count(g, reduced_size(x_shape, axis)), x_shape, axis, keepdims))


@primitive(floating=True)
def var(x, axis=None, correction=0, keepdims=False):
    """The variance over `axis`, ``Σ(x - mean)² / (n - correction)``. NumPy's default: correction 0."""
    if correction >= reduced_size(x.shape, axis):
        raise ValueError(f"var: correction {correction} leaves no degree of freedom, for axis {axis} of shape "
                         f"{tuple(x.shape)}")
    return as_narrow(widened(x).var(axis=axis, ddof=correction, keepdims=keepdims), x)


# d var / dxᵢ = 2 (xᵢ - mean) / (n - correction): the dependence through the mean cancels, as Σ(x - mean) = 0.
var.gradient(x=lambda g, x, x_shape, axis, correction, keepdims:
             divide_by_count(expand_reduced(g, x_shape, axis, keepdims) * (x - mean(x, axis, True)),
                             (reduced_size(x_shape, axis) - correction) / 2))


@public
def std(x: Any, axis: Axis = None, correction: int = 0, keepdims: bool = False) -> Any:
    """The standard deviation over `axis`, ``√var``. NumPy's default: correction 0.

    Where it is 0, and its slope infinite, its gradient is 0: the constant element has no direction to move in first.
    """
    return root(var(x, axis, correction, keepdims))


def root(x: Any) -> Any:
    """``√x``, where the gradient at 0 is 0, to every order."""
    zero = equal(x, 0)
    return where(zero, 0.0, sqrt(where(zero, 1.0, x)))


@primitive
def prod(x, axis=None, keepdims=False):
    """The product over `axis`. Its gradient divides by nothing, and so is right beside zeros, to every order."""
    return x.prod(axis=axis, keepdims=keepdims)


def prod_gradient(g, x, axis, keepdims):
    # forward: the product of all     so here: for each the product of the others, those before it times those after it
    rows = axes_last(x, axis)
    before = cumprod(delay(rows, -1, 1.0), -1)
    after = flip(cumprod(delay(flip(rows, -1), -1, 1.0), -1), -1)
    return keep_reduced(g, x.shape, axis, keepdims) * axes_back(before * after, x.shape, axis)


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


prod.gradient(x=prod_gradient)


def _share_among_ties(g: Any, x: Any, out: Any, axis: Axis, keepdims: bool) -> Any:
    """Where several elements attain the extreme value they share its gradient equally (a subgradient)."""
    shape = x.shape
    attains = equal(x, keep_reduced(out, shape, axis, keepdims))
    ties = attains.astype(widened(g).dtype).sum(axis=axis, keepdims=True)
    return keep_where(attains, divide_by_count(keep_reduced(g, shape, axis, keepdims), ties))


@primitive
def max(x, axis=None, keepdims=False):
    """The maximum over `axis`; elements that tie for it share the gradient equally."""
    return x.max(axis=axis, keepdims=keepdims)


max.gradient(x=lambda g, x, out, axis, keepdims: _share_among_ties(g, x, out, axis, keepdims))


@primitive
def min(x, axis=None, keepdims=False):
    """The minimum over `axis`; elements that tie for it share the gradient equally."""
    return x.min(axis=axis, keepdims=keepdims)


min.gradient(x=lambda g, x, out, axis, keepdims: _share_among_ties(g, x, out, axis, keepdims))


@primitive(floating=True)
def logsumexp(x, axis=None, keepdims=False):
    """``log Σ eˣ`` over `axis`, without overflow: the maximum is taken out first.

    All -inf gives -inf, gradient 0, and so does an empty axis.
    """
    namespace = xp(x)
    if not x.size:  # Σ eˣ over no elements is 0
        return x.sum(axis=axis, keepdims=keepdims) - namespace.inf
    top = x.max(axis=axis, keepdims=True)
    top = namespace.where(namespace.isfinite(top), top, 0)
    total = widened(namespace.exp(x - top)).sum(axis=axis, keepdims=True)
    # log 0 = -inf is the answer for a row of -inf; it is written so that NumPy has nothing to warn of.
    logarithm = namespace.where(total > 0, namespace.log(namespace.where(total > 0, total, 1)), -namespace.inf)
    out = as_narrow(logarithm + top, x)
    return out if keepdims else out.sum(axis=axis)  # over axes of length 1: only their removal


# d logsumexp / dx = softmax(x) = exp(x - logsumexp(x))
def logsumexp_gradient(g, x, out, axis, keepdims):
    out = keep_reduced(out, x.shape, axis, keepdims)
    finite = out > -math.inf
    return keep_reduced(g, x.shape, axis, keepdims) * where(finite, exp(x - where(finite, out, 0.0)), 0.0)


logsumexp.gradient(x=logsumexp_gradient)


def _keep_axis(indices: Any, x: Any, axis: int | None, keepdims: bool) -> Any:
    """Put the axis that a search went along back, with length 1, if `keepdims`."""
    if not keepdims:
        return indices
    return indices.reshape((1,) * x.ndim) if axis is None else xp(x).expand_dims(indices, axis)


@primitive
def argmax(x, axis=None, keepdims=False):
    """The index of the (first) maximum along `axis`, int64. Has no gradient."""
    return _keep_axis(x.argmax(axis=axis), x, axis, keepdims)


@primitive
def argmin(x, axis=None, keepdims=False):
    """The index of the (first) minimum along `axis`, int64. Has no gradient."""
    return _keep_axis(x.argmin(axis=axis), x, axis, keepdims)


@primitive
def any(x, axis=None, keepdims=False):
    """Whether any element is true. Has no gradient."""
    return x.any(axis=axis, keepdims=keepdims)


@primitive
def all(x, axis=None, keepdims=False):
    """Whether all elements are true. Has no gradient."""
    return x.all(axis=axis, keepdims=keepdims)


for _index in (argmax, argmin, any, all):
    _index.no_gradient()
