"""Reading and adding at places: ``x[index]``, take, gather (take_along_axis), scatter-add.

Reading at places and adding at places are each other's transpose, and so each other's rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device import add_at, is_host, xp
from minigrad.ops.elementwise import where
from minigrad.primitive import primitive


def is_basic(index: Any) -> bool:
    """Whether an index has only slices, ints, Ellipsis and None, so that it never names a place twice."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is Ellipsis or isinstance(part, slice)
               or (isinstance(part, (int, np.integer)) and not isinstance(part, bool)) for part in parts)


@primitive
def getitem(x, index):
    """``x[index]``: slices, ints, integer arrays, boolean masks, Ellipsis and None, as in NumPy."""
    return x[index]


@primitive
def put_into_zeros(values, index, shape):
    """Zeros of `shape` with `values` added at ``[index]``; a place that is named twice gets both."""
    out = xp(values).zeros(shape, values.dtype)
    _add_into(out, values, index)
    return out


def _add_into(buffer: Any, values: Any, index: Any) -> None:
    if is_basic(index):
        buffer[index] += values
    else:
        add_at(buffer, index, values)


getitem.gradient(x=lambda g, x_shape, index: put_into_zeros(g, index, x_shape))
getitem.accumulating_gradient(x=lambda buffer, g, index: _add_into(buffer, g, index))
put_into_zeros.gradient(values=lambda g, index: getitem(g, index))


def check_indices(indices: Any, size: int, operation: str) -> None:
    """IndexError for an index out of [-size, size), naming it; indices on a GPU are not read back for this."""
    if is_host(indices) and indices.size and (indices.min() < -size or indices.max() >= size):
        worst = indices.max() if indices.max() >= size else indices.min()
        raise IndexError(f"{operation}: index {int(worst)} is out of range for an axis of length {size}")


@primitive
def take(x, indices, axis=None):
    """The slices of x at `indices` (an integer array) along `axis`; of the flattened x if `axis` is None."""
    if axis is None:
        return x.reshape(-1)[indices]
    check_indices(indices, x.shape[axis], "take")
    return xp(x).take(x, indices, axis=axis)


def take_gradient(g, x_shape, indices, axis):
    if axis is None:
        return put_into_zeros(g, indices, (int(np.prod(x_shape)),)).reshape(x_shape)
    return put_into_zeros(g, (*(slice(None),) * (axis % len(x_shape)), indices), x_shape)


take.gradient(x=take_gradient)


def _along(indices: Any, axis: int) -> tuple[Any, ...]:
    """The index that picks, for each place in `indices`, the element at ``indices[place]`` along `axis`."""
    namespace, ndim = xp(indices), indices.ndim
    axis %= ndim
    return tuple(indices if i == axis else namespace.arange(n).reshape((1,) * i + (n,) + (1,) * (ndim - i - 1))
                 for i, n in enumerate(indices.shape))


@primitive
def gather(x, indices, axis):
    """``out[i][j] = x[indices[i][j]][j]`` for axis 0, and so on: NumPy's take_along_axis, PyTorch's gather.

    `indices` has as many dimensions as x and is not longer along any axis but `axis`.
    """
    if indices.ndim != x.ndim:
        raise ValueError(f"gather: indices of shape {indices.shape} need as many dimensions as x, {x.shape}")
    check_indices(indices, x.shape[axis], "gather")
    return x[_along(indices, axis)]


gather.gradient(x=lambda g, x_shape, indices, axis: put_into_zeros(g, _along(indices, axis), x_shape))


@primitive
def scatter_add(x, indices, values, axis):
    """A copy of x with ``values[i][j]`` added at ``[indices[i][j]][j]`` for axis 0, and so on."""
    if indices.shape != values.shape:
        raise ValueError(f"scatter_add: indices {indices.shape} and values {values.shape} must have one shape")
    check_indices(indices, x.shape[axis], "scatter_add")
    out = x.copy()
    add_at(out, _along(indices, axis), values)
    return out


scatter_add.gradient(x=lambda g: g,
                     values=lambda g, indices, axis: gather(g, indices, axis))


def masked_fill(x: Any, mask: Any, value: float) -> Any:
    """x with `value` where the boolean `mask` (broadcast to x) is true."""
    return where(mask, value, x)
