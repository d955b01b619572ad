"""float16: sums, products, variances and shares are computed in float32, and rounded once.

float16 counts to 65504 only, and its sums lose digits long before: of 4096 numbers, NumPy's sum along any axis but the
last has lost one part in a hundred. The bodies here find the result that float16 can hold. A sum that float16 cannot
hold is inf, as in NumPy.

NumPy's matrix product of float16 adds up in float32, too, but has no BLAS to go to: a copy in float32 and back takes a
fraction of its time, a hundredth for matrices of 512 × 512.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device import xp
from minigrad.device.sums import sum_over
from minigrad.engine.operands import sum_to
from minigrad.kernels.bodies import add_body
from minigrad.kernels.host.reduction import cumsum_gradient, cumsum_of, mean_of, var_gradient, var_of
from minigrad.ops.comparison import equal, isnan
from minigrad.ops.linalg import batched_matmul
from minigrad.ops.more import einsum
from minigrad.ops.more.reduction import var
from minigrad.ops.more.scan import _cumsum
from minigrad.ops.reduction import expand_reduced, keep_reduced, logsumexp, max, mean, min, reduced_size
from minigrad.ops.selection import where
from minigrad.ops.shape import rows

HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)


def is_half(x: Any) -> bool:
    """Whether x is a float16 array in host memory."""
    return type(x) is np.ndarray and x.dtype is HALF


def is_half_anywhere(x: Any) -> bool:
    """Whether x is a float16 array on any device."""
    return getattr(x, "dtype", None) == HALF


def widened(x: Any) -> Any:
    """x, in float32 if it is float16."""
    return x.astype(SINGLE) if x.dtype == HALF else x


def as_narrow(out: Any, x: Any) -> Any:
    """`out`, in float16 if x is: the end of what begins with `widened`."""
    return out.astype(HALF) if x.dtype == HALF else out


def product(x: Any, y: Any, out: Any = None) -> Any:
    """``x @ y`` of raw arrays, wherever they are, into `out` if it is given."""
    if type(x) is not np.ndarray or x.dtype is not HALF or not is_half(y):
        return x @ y if out is None else xp(x).matmul(x, y, out=out)
    wide = np.matmul(x.astype(SINGLE), y.astype(SINGLE))
    if out is None:
        return wide.astype(HALF)
    out[...] = wide
    return out


def divide_by_count(g: Any, count: Any) -> Any:
    """``g / count`` in the dtype of g, also where that is float16 and the count, above 65504, is not."""
    return as_narrow(widened(g) / count, g)


# --------------------------------------------------------------------------- bodies: matrix products


def matmul_in_single(x: Any, y: Any) -> Any:
    if y.ndim == 2 and x.ndim > 2:  # one matrix for all rows
        return product(rows(x), y).reshape(*x.shape[:-1], y.shape[-1])
    return product(x, y)


def matmul_gradient_x(g, y, x_shape):
    return sum_to(matmul_in_single(g, y.mT), x_shape)


def matmul_gradient_y(g, x, y_shape):
    if len(y_shape) == 2 and x.ndim > 2:
        return product(rows(x).mT, rows(g))
    return sum_to(matmul_in_single(x.mT, g), y_shape)


def einsum_in_single(*xs, subscripts):
    return einsum._einsum.forward(*[x.astype(SINGLE) for x in xs], subscripts=subscripts).astype(HALF)


def einsum_gradient(g, xs, subscripts, needs):
    gradients = einsum.einsum_gradient(g.astype(SINGLE), [x.astype(SINGLE) for x in xs], subscripts, needs)
    return [gradient if gradient is None else gradient.astype(HALF) for gradient in gradients]


# --------------------------------------------------------------------------- bodies: reductions


def mean_gradient(g, x_shape, axis, keepdims):
    return expand_reduced(divide_by_count(g, reduced_size(x_shape, axis)), x_shape, axis, keepdims)


def var_in_single(x, axis, correction, keepdims):
    return var_of(x.astype(SINGLE), axis, correction, keepdims).astype(HALF)


def var_gradient_in_single(g, x, axis, correction, keepdims):
    return var_gradient(g.astype(SINGLE), x.astype(SINGLE), axis, correction, keepdims).astype(HALF)


def cumsum_in_single(x, axis):
    return cumsum_of(x.astype(SINGLE), axis).astype(HALF)


def cumsum_gradient_in_single(g, axis):
    return cumsum_gradient(g.astype(SINGLE), axis).astype(HALF)


def share_among_ties(g, x, out, axis, keepdims):
    attains = equal(x, keep_reduced(out, x.shape, axis, keepdims)) | isnan(x)
    ties = sum_over(attains.astype(SINGLE), axis, True)
    return where(attains, divide_by_count(keep_reduced(g, x.shape, axis, keepdims), ties), 0.0)


def logsumexp_in_single(x, axis, keepdims):
    namespace = xp(x)
    if not (x.size and x.ndim):
        return logsumexp.forward(x, axis, keepdims)
    top = x.max(axis=axis, keepdims=True)
    top = namespace.where(namespace.isfinite(top), top, 0)
    total = sum_over(namespace.exp(x - top).astype(SINGLE), axis, True)
    logarithm = namespace.where(total == 0, -namespace.inf, namespace.log(namespace.where(total == 0, 1, total)))
    out = (logarithm + top).astype(HALF)
    return out if keepdims else out.sum(axis=axis)


def takes_halves(x, *others):
    """It takes float16 arrays."""
    return is_half_anywhere(x)


def takes_axes_of_halves(x, *others):
    """It takes float16 arrays with axes; the definitions reduce numbers."""
    return is_half_anywhere(x) and x.ndim > 0


def install() -> None:
    """Register the bodies."""
    add_body(batched_matmul, lambda x, y: is_half(x) and is_half(y), matmul_in_single, "precise",
             x=matmul_gradient_x, y=matmul_gradient_y)
    add_body(einsum._einsum, lambda xs, subscripts: all(is_half(x) for x in xs), einsum_in_single,
             "precise").joint_gradient("xs")(einsum_gradient)
    add_body(mean, takes_axes_of_halves, mean_of, "precise", x=mean_gradient)
    add_body(var, takes_axes_of_halves, var_in_single, "precise", x=var_gradient_in_single)
    add_body(max, takes_halves, kind="precise", x=share_among_ties)
    add_body(min, takes_halves, kind="precise", x=share_among_ties)
    add_body(logsumexp, takes_halves, logsumexp_in_single, "precise")
    add_body(_cumsum, takes_halves, cumsum_in_single, "precise", x=cumsum_gradient_in_single)
