"""Reading at places: ``x[index]``, take, gather (take_along_axis), repeating and sorting.

Reading at places and adding at places are each other's transpose, and so each other's rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from minigrad.device import device_of, is_array, is_host, plain, to_device, to_numpy, xp
from minigrad.device.sums import add_at
from minigrad.engine.node import TensorBase
from minigrad.engine.primitive import primitive, public
from minigrad.ops.elementwise import where
from minigrad.ops.shape import along_one_axis, ravel, reshape


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
    out = xp(values).zeros_like(values, shape=shape or (1,)).reshape(shape)  # CuPy takes () for no shape
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

    IndexError for an index out of range, naming it; TypeError for what is no integer. Indices that come on a GPU are
    not read back for the range.
    """
    values, length, device = raw(indices), (x.shape or (1,))[axis], device_of(raw(x))
    if is_host(indices) or not is_array(values):  # a copy: an array may change before the backward pass
        values = np.array(values, dtype=None if is_array(values) or np.size(values) else np.int64)
    if values.dtype.kind not in "iu":
        raise TypeError(f"{operation}: the indices must be integers, got {values.dtype}")
    if is_host(values) and values.size and (values.min() < -length or values.max() >= length):
        worst = values.max() if values.max() >= length else values.min()
        raise IndexError(f"{operation}: index {int(worst)} is out of range for axis {axis} of shape {tuple(x.shape)}")
    stays = isinstance(indices, TensorBase) and device_of(values) == device  # then the tape sees it change
    return indices if stays else to_device(values, device)


@public
def take(x: Any, indices: Any, axis: int | None = None) -> Any:
    """The slices of x at `indices` (integers of any shape) along `axis`; of the flattened x if `axis` is None.

    A negative index counts from the end. Raises IndexError for one that is out of range (on the host) and for an axis
    that x lacks, TypeError for indices that are not integers.
    """
    if axis is None or not x.shape:
        x, axis = ravel(x), axis or 0
    axis = normalize_axis_index(axis, len(x.shape))
    places = indices_on_device(indices, x, axis, "take")
    return getitem(x, (*(slice(None),) * axis, places) if axis else places)


@public
def repeat(x: Any, repeats: Any, axis: int | None = None) -> Any:
    """Each element repeated `repeats` times, ``[a, b] -> [a, a, b, b]``, along `axis` (flattened if it is None).

    This is NumPy's repeat, and PyTorch's repeat_interleave. PyTorch's Tensor.repeat, ``[a, b] -> [a, b, a, b]``, is
    `tile`.

    Args:
        repeats: an int, or one for each place along `axis`: a list, an array or a tensor (a GPU is waited for).
    """
    if axis is None or not x.shape:
        x, axis = ravel(x), axis or 0
    counts = to_numpy(raw(repeats)) if is_array(raw(repeats)) else np.asarray(repeats)
    if counts.dtype.kind not in "iu" and counts.size:
        raise TypeError(f"repeats must be integers, got {counts.dtype}")
    return take(x, np.repeat(np.arange(x.shape[axis]), counts.astype(np.int64)), axis)


def along(indices: Any, axis: int) -> tuple[Any, ...]:
    """The index that picks, for each place in `indices`, the element at ``indices[place]`` along `axis`."""
    namespace, ndim = xp(indices), indices.ndim
    axis %= ndim or 1
    return tuple(indices if i == axis else namespace.arange(n).reshape((1,) * i + (n,) + (1,) * (ndim - i - 1))
                 for i, n in enumerate(indices.shape))


@primitive(fresh=True)
def _gather(x, indices, axis):
    """`gather` of indices that are known to fit."""
    return x[along(indices, axis)]


_gather.gradient(x=lambda g, x_shape, indices, axis: put_into_zeros(g, along(indices, axis), x_shape))


@public
def gather(x: Any, axis: int, index: Any) -> Any:
    """``out[i][j] = x[index[i][j]][j]`` for axis 0, and so on: PyTorch's gather, NumPy's take_along_axis.

    `index` has as many dimensions as x and is not longer along any axis but `axis`; a number counts as one element
    along axis 0, and its index may have one dimension or none. Errors are those of `take`, and ValueError for a shape
    that does not fit.
    """
    if not x.shape:
        x = reshape(x, (1,) * np.ndim(raw(index)))
    axis = normalize_axis_index(axis, len(x.shape) or 1)
    index = indices_on_device(index, x, axis, "gather")
    longer = [m > n for i, (m, n) in enumerate(zip(index.shape, x.shape, strict=False)) if i != axis]
    if len(index.shape) != len(x.shape) or any(longer):
        raise ValueError(f"gather: indices of shape {tuple(index.shape)} do not fit an input of shape "
                         f"{tuple(x.shape)}; they need as many dimensions, none of them longer, but for axis {axis}")
    return _gather(x, index, axis)


@primitive
def _argsort(x, axis):
    return xp(x).argsort(x, axis=axis, kind="stable")


_argsort.no_gradient()


@public
def argsort(x: Any, axis: int | None = -1) -> Any:
    """The indices, int64, that would sort x along `axis` (the flattened x if it is None). No gradient.

    NaN counts as the largest. Equal elements keep their order.
    """
    return along_one_axis(_argsort, x, axis)


@public
def sort(x: Any, axis: int | None = -1) -> Any:
    """x sorted along `axis` (flattened if it is None): the values alone, as in NumPy; `argsort` gives the places.

    Which element goes where has no gradient; each keeps its own.
    """
    return along_one_axis(lambda x, axis: _gather(x, _argsort(x, axis), axis), x, axis)


@public
def masked_fill(x: Any, mask: Any, value: float) -> Any:
    """x with `value` where the boolean `mask` (a tensor or an array) is true; x and the mask broadcast.

    A NumPy array is sent to the device of x.
    """
    return where(mask, value, x)
