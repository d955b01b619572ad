"""Norms of vectors, as `numpy.linalg.norm` has them."""

from __future__ import annotations

import math
import numbers
from typing import Any

from minigrad.arguments import public
from minigrad.ops.comparison import equal, not_equal
from minigrad.ops.powers import power
from minigrad.ops.reduction import Axis, as_narrow, max, min, normalize_axes, root, sum, widened
from minigrad.ops.selection import absolute, where
from minigrad.ops.shape import require_arrays


@public
def norm(x: Any, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Any:
    """The norm of the vectors along `axis`.

    =============  ==========================================================================
    ord            norm
    =============  ==========================================================================
    None, "fro"    ``√Σ x²`` over all of `axis`: of matrices the Frobenius norm
    2              the same, of vectors
    inf, -inf      ``max |x|`` and ``min |x|``; elements that tie share the gradient equally
    0              how many elements are not 0; has no gradient
    another p      ``(Σ |x|ᵖ)^(1/p)``, as ``Σ |x|`` for p = 1
    =============  ==========================================================================

    The gradient at the zero vector, where a norm has a kink, is 0 (as in PyTorch); for 0 < p < 1 so is that of an
    element that is 0, and for p < 0 that of all, if one of them is 0. float16 is summed in float32.

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
    if of_vectors and len(axes) != 1:
        raise ValueError(f"norm: ord {ord} with {len(axes)} axes of shape {tuple(x.shape)} would be a matrix norm, of "
                         "which there is the Frobenius norm alone (ord None); for a norm of vectors give one axis")
    wide = widened(x * 1.0 if x.dtype.kind != "f" else x)
    return as_narrow(_norm(wide, ord if of_vectors else 2, axis, keepdims), x)


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
