"""Reading at places: ``x[index]``, take, gather (take_along_axis).

Reading at places and adding at places are each other's transpose, and so each other's rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.arguments import public, single_axis
from minigrad.device import device_of, is_array, is_host, plain, to_device, xp
from minigrad.device.writing import add_at
from minigrad.engine.node import TensorBase
from minigrad.engine.primitive import primitive
from minigrad.ops.shape import reshape


def is_basic(index: Any) -> bool:
    """Whether an index has only slices, ints, Ellipsis and None, so that it never names a place twice."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is Ellipsis or isinstance(part, slice)
               or (isinstance(part, (int, np.integer)) and not isinstance(part, bool)) for part in parts)


@primitive(fresh=True)
def getitem(x, index):
    """``x[index]``: slices, ints, integer arrays, boolean masks, Ellipsis and None; a view where NumPy gives one."""
    return x[index]


@primitive
def put_into_zeros(values, index, shape):
    """Zeros of `shape` with `values` added at ``[index]``; a place that is named twice gets both."""
    out = xp(values).zeros_like(values, shape=shape)
    _add_into(out, values, index)
    return out


def _add_into(buffer: Any, g: Any, index: Any) -> None:
    if is_basic(index):
        buffer[index] += g
    else:
        add_at(buffer, index, g)


getitem.gradient(x=lambda g, x_shape, index: put_into_zeros(g, index, x_shape))
getitem.accumulating_gradient(x=_add_into)
put_into_zeros.gradient(values=lambda g, index: getitem(g, index))


def raw(x: Any) -> Any:
    """The array of a tensor, an array as a `plain` one, anything else as it is; the parts of a tuple likewise."""
    if isinstance(x, tuple):
        return tuple([raw(part) for part in x])
    return x._data if isinstance(x, TensorBase) else plain(x, "index")


def indices_on_device(indices: Any, x: Any, axis: int, operation: str) -> Any:
    """`indices` (a tensor, array or nested list of integers) along `axis` of x, on the device of x.

    IndexError for an axis that x lacks and for an index out of range, naming it; TypeError for what is no integer.
    Indices that come on a GPU are not read back for the range.
    """
    shape, values, device = tuple(x.shape) or (1,), raw(indices), device_of(raw(x))  # a number has axis 0
    single_axis(axis, shape, operation)
    if is_host(indices) or not is_array(values):  # a copy: an array may change before the backward pass
        values = np.array(values, dtype=None if is_array(values) or np.size(values) else np.int64)
    if values.dtype.kind not in "iu":
        raise TypeError(f"{operation}: the indices must be integers, got {values.dtype}")
    if is_host(values) and values.size and (values.min() < -shape[axis] or values.max() >= shape[axis]):
        worst = values.max() if values.max() >= shape[axis] else values.min()
        raise IndexError(f"{operation}: index {int(worst)} is out of range for axis {axis} of shape {shape}")
    stays = isinstance(indices, TensorBase) and device_of(values) == device  # then the tape sees it change
    return indices if stays else to_device(values, device)


@primitive(fresh=True)
def _take(x, indices, axis):
    return xp(x).take(x, indices.astype(np.intp, copy=False), axis=axis)  # on 32 bits, take refuses int64


_take.gradient(x=lambda g, x_shape, indices, axis:
               put_into_zeros(g, (*(slice(None),) * (axis % len(x_shape)), indices), x_shape))


@public
def take(x: Any, indices: Any, axis: int | None = None) -> Any:
    """The slices of x at `indices` (integers of any shape) along `axis`; of the flattened x if `axis` is None.

    A negative index counts from the end. Raises IndexError for one that is out of range (on the host) and for an axis
    that x lacks, TypeError for indices that are not integers.
    """
    if axis is None or not len(x.shape):
        x, axis = reshape(x, (-1,)), axis or 0
    indices = indices_on_device(indices, x, axis, "take")
    return _take(x, indices, axis)


def along(indices: Any, axis: int) -> tuple[Any, ...]:
    """The index that picks, for each place in `indices`, the element at ``indices[place]`` along `axis`."""
    namespace, ndim = xp(indices), indices.ndim
    axis %= ndim or 1
    return tuple(indices if i == axis else namespace.arange(n).reshape((1,) * i + (n,) + (1,) * (ndim - i - 1))
                 for i, n in enumerate(indices.shape))


@primitive(fresh=True)
def gather_at(x, indices, axis):
    """`gather` of indices that are known to fit."""
    return x[along(indices, axis)]


gather_at.gradient(x=lambda g, x_shape, indices, axis: put_into_zeros(g, along(indices, axis), x_shape))


@public
def gather(input: Any, axis: int, index: Any) -> Any:
    """``out[i][j] = input[index[i][j]][j]`` for axis 0, and so on: PyTorch's gather, NumPy's take_along_axis.

    `index` has as many dimensions as the input and is not longer along any axis but `axis`; a number counts as one
    element along axis 0, and its index may have one dimension or none. Errors are those of `take`,
    and ValueError for a shape that does not fit.
    """
    if not isinstance(axis, (int, np.integer)):
        raise TypeError("gather: the order is gather(input, axis, index), with an int for the axis; got a "
                        f"{type(axis).__name__} in its place")
    index = indices_on_device(index, input, axis, "gather")
    if not len(input.shape):
        input = reshape(input, (1,) * len(index.shape))
    check_fit(index.shape, input.shape, axis)
    return gather_at(input, index, axis)


def check_fit(indices: tuple[int, ...], shape: tuple[int, ...], axis: int) -> None:
    """ValueError unless indices of that shape pick from an array of `shape` along `axis`."""
    fits = len(indices) == len(shape) and all(m <= n or i == axis % len(shape)
                                              for i, (m, n) in enumerate(zip(indices, shape, strict=True)))
    if not fits:
        raise ValueError(f"gather: indices of shape {tuple(indices)} do not fit an input of shape {tuple(shape)}; "
                         f"they need as many dimensions, none of them longer, but for axis {axis}")
