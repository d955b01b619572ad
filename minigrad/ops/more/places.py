"""Reading and writing at places: the places of what is not 0, masks, scatter. Each op makes a new tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.arguments import numbers_on, public, whole_number
from minigrad.device import device_of, is_array, is_host, on_device_of, to_device, xp
from minigrad.device.writing import add_at
from minigrad.engine.node import TensorBase
from minigrad.engine.operands import numeric
from minigrad.engine.primitive import primitive
from minigrad.ops.indexing import (
    along,
    check_fit,
    gather,
    gather_at,
    getitem,
    indices_on_device,
    put_into_zeros,
    raw,
    require_axis,
    take,
)
from minigrad.ops.selection import where
from minigrad.ops.shape import broadcast_to, concatenate, require_arrays, reshape


@public
def index_select(input: Any, axis: int, index: Any) -> Any:
    """The slices at `index`, integers of one dimension, along `axis`: PyTorch's order of the arguments of `take`."""
    require_axis(axis, "index_select", "input, axis, index")
    index = indices_on_device(index, input, axis, "index_select")
    if len(index.shape) != 1:
        raise ValueError(f"index_select: the index must have one dimension, got shape {tuple(index.shape)}; take has "
                         "any")
    return take(input, index, axis) if len(input.shape) else gather(input, axis, reshape(index, ()))


def require_mask(mask: Any, operation: str) -> None:
    """TypeError unless the mask is a boolean tensor or array."""
    require_arrays(operation, mask)
    if mask.dtype.kind != "b":
        raise TypeError(f"{operation}: the mask must be boolean, got {mask.dtype}")


@public
def masked_select(x: Any, mask: Any) -> Any:
    """The elements of x, in one dimension, where the boolean `mask` is true; x and the mask broadcast.

    How many there are is known to the device alone: on a GPU this waits for it.
    """
    require_arrays("masked_select", x)
    require_mask(mask, "masked_select")
    try:
        shape = np.broadcast_shapes(tuple(x.shape), tuple(mask.shape))
    except ValueError:
        raise ValueError(f"masked_select: the mask has shape {tuple(mask.shape)}, which does not broadcast with "
                         f"{tuple(x.shape)}") from None
    if device_of(raw(mask)) != device_of(raw(x)):
        mask = to_device(raw(mask), device_of(raw(x)))
    return getitem(broadcast_to(x, shape), broadcast_to(mask, shape))


@primitive
def argwhere(x):
    """The places, (how many, ndim) int64, of the elements that are not 0, in their order. Has no gradient.

    How many there are is known to the device alone: on a GPU this waits for it.
    """
    return xp(x).argwhere(x)


argwhere.no_gradient()


@public
def nonzero(x: Any) -> tuple[Any, ...]:
    """The places of the elements that are not 0, for each axis its indices, as in NumPy: ``x[nonzero(x)]`` reads them.

    (PyTorch's is our `argwhere`.)
    """
    require_arrays("nonzero", x)
    if not len(x.shape):
        raise ValueError("nonzero: needs at least one dimension, got a 0-d operand")
    places = argwhere(x)
    return tuple([places[:, i] for i in range(len(x.shape))])


# --------------------------------------------------------------------------- writing


@primitive
def _scatter_add(x, indices, values, axis):
    out = x.astype(np.result_type(x.dtype, values.dtype))
    add_at(out, along(indices, axis), values)
    return out


_scatter_add.gradient(x=lambda g: g,
                      values=lambda g, indices, axis: gather_at(g, indices, axis))


@public
def scatter_add(input: Any, axis: int, index: Any, src: Any) -> Any:
    """A copy of the input with ``src[i][j]`` added at ``[index[i][j]][j]`` for axis 0, and so on, as in PyTorch.

    `src` is a tensor or an array, no shorter than `index` along any axis; what goes beyond the index is not used. A
    place that is named twice gets both. Errors are those of `gather`.
    """
    index, src = index_and_source(input, axis, index, src, "scatter_add")
    return _scatter_add(input, index, src, axis)


@public
def scatter(input: Any, axis: int, index: Any, src: Any) -> Any:
    """A copy of the input with ``src[i][j]`` written at ``[index[i][j]][j]`` for axis 0, and so on, as in PyTorch.

    `src` is a tensor or an array as in `scatter_add`, or a number. Of several that are written to one place the last
    stays, and it alone has a gradient. Dtypes are as in `index_put`, errors those of `gather`.
    """
    if isinstance(src, (bool, int, float, np.generic)):
        require_arrays("scatter", input)
        number = values_for(input, src, "scatter")
        with on_device_of(number):
            src = xp(number).broadcast_to(number, np.shape(raw(index)))
    index, src = index_and_source(input, axis, index, src, "scatter")
    with on_device_of(raw(index)):
        places = along(raw(index), axis)
    return index_put(input, places, src)


def index_and_source(input: Any, axis: int, index: Any, src: Any, operation: str) -> tuple[Any, Any]:
    """The index, on the device of the input, and the part of `src` that it uses; errors for what does not fit."""
    require_axis(axis, operation, "input, axis, index, src")
    require_arrays(operation, input, src)
    index = indices_on_device(index, input, axis, operation)
    if not len(input.shape):
        index, src = reshape(index, ()), reshape(src, ())
    shape, given = tuple(index.shape), tuple(src.shape)
    if len(shape) != len(given) or any(m > n for m, n in zip(shape, given, strict=True)):
        raise ValueError(f"{operation}: index {shape} must not be longer than src {given} along any axis")
    check_fit(shape, input.shape, axis, operation)
    return index, src if shape == given else src[tuple(slice(n) for n in shape)]


@public
def index_add(input: Any, axis: int, index: Any, source: Any) -> Any:
    """A copy of the input with the slices of `source` added to those at `index` along `axis`, as in PyTorch.

    `source` has the shape of the input, but along `axis` the length of `index`. A slice that is named twice gets both.

    Raises IndexError and TypeError as `take`, ValueError for shapes that do not fit.
    """
    require_axis(axis, "index_add", "input, axis, index, source")
    require_arrays("index_add", input, source)
    index = indices_on_device(index, input, axis, "index_add")
    if not len(input.shape):
        return input + reshape(source, ())
    axis %= len(input.shape)
    expected = (*input.shape[:axis], *index.shape, *input.shape[axis + 1:])
    if len(index.shape) != 1 or tuple(source.shape) != expected:
        raise ValueError(f"index_add: the index, of one dimension, and the source must fit the input: source.shape == "
                         f"{expected}, got {tuple(source.shape)}, index {tuple(index.shape)}, input "
                         f"{tuple(input.shape)}")
    return input + put_into_zeros(source, (*(slice(None),) * axis, index), tuple(input.shape))


@public
def index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """A copy of x with `values` written at ``[indices]``, what ``x[indices] = values`` would do in place.

    Args:
        indices: whatever ``x[indices]`` takes: a tuple of tensors, arrays, lists, slices and ints, or a boolean mask.
        values: a tensor, an array or numbers that broadcast to the shape of ``x[indices]``. The result has the wider
            dtype of both; numbers take that of x, but fractions among integers make it float32.
        accumulate: add them to what is there, a place that is named twice getting both. Otherwise the last that is
            written to a place stays, and it alone has a gradient.

    Raises:
        IndexError: an index out of range (of those on the host), or that fits no axis.
        ValueError: values that do not broadcast.
        TypeError: values that are no numbers.
    """
    require_arrays("index_put", x)
    device, shape = device_of(raw(x)), tuple(x.shape)
    places = _places(shape, indices, device)
    if not isinstance(values, TensorBase) and not is_array(values):
        values = values_for(x, values, "index_put")
    try:
        with on_device_of(raw(values)):  # they may be a raw array, which a primitive leaves to the caller's device
            values = reshape(broadcast_to(values, tuple(places.shape)), (-1,))
    except ValueError:
        raise ValueError(f"index_put: values of shape {tuple(values.shape)} do not broadcast to {tuple(places.shape)}, "
                         f"the shape of x[indices] for x of shape {shape}") from None
    flat = reshape(x, (-1,))
    with on_device_of(places):
        places = places.reshape(-1)
        if accumulate:
            return reshape(_scatter_add(flat, places, values, 0), shape)
        # Each place reads from x and the values in a row: where it stands itself, or the last value written to it.
        sources = xp(places).arange(flat.shape[0], dtype=np.uint64)  # CuPy has no atomic maximum of int64
        written = xp(places).arange(flat.shape[0], flat.shape[0] + places.shape[0], dtype=np.uint64)
        xp(places).maximum.at(sources, places, written)
        sources = sources.astype(np.int64)
    return reshape(getitem(concatenate([flat, values]), sources), shape)


def values_for(x: Any, values: Any, operation: str) -> Any:
    """Numbers, or lists of them, as an array to be written into x, in its dtype if that has room for them."""
    found, dtype = np.asarray(values), np.dtype(x.dtype)
    if found.dtype.kind == "f" and dtype.kind != "f":
        dtype = np.dtype(np.float32)
    elif found.dtype.kind in "iu" and dtype.kind == "b":
        dtype = np.dtype(np.int64)
    return numbers_on(device_of(raw(x)), values, dtype, operation)


def _places(shape: tuple[int, ...], indices: Any, device: str) -> Any:
    """The flat places, on `device`, that an index names. A host index is looked up on the host: it may be wrong."""
    parts = tuple([raw(part) for part in indices]) if isinstance(indices, tuple) else raw(indices)
    arrays = [part for part in (parts if isinstance(parts, tuple) else (parts,)) if is_array(part)]
    anchor = next((part for part in arrays if not is_host(part)), np.empty(0))
    with on_device_of(anchor):
        everywhere = xp(anchor).arange(int(np.prod(shape))).reshape(shape)
        try:
            found = everywhere[parts]
        except IndexError as error:
            raise IndexError(f"index_put: {error}, for x of shape {shape}") from None
        return to_device(xp(anchor).asarray(found), device)


@public
def masked_fill(x: Any, mask: Any, value: float) -> Any:
    """x with `value` where the boolean `mask` (a tensor or an array) is true; x and the mask broadcast.

    A NumPy array is sent to the device of x.
    """
    require_arrays("masked_fill", x)
    require_mask(mask, "masked_fill")
    if not isinstance(value, (bool, int, float, np.generic)):
        require_arrays("masked_fill", value)
    return where(mask, value, x)


@public
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each of 0, 1, … occurs in x; with `weights`, the sum of the weights at its places, as in NumPy.

    Args:
        x: (n,) integers, none negative; a tensor, an array or a list. A GPU is waited for, to find the largest.
        weights: (n,), of which the counts have the dtype, and to which they have a gradient. None: counts in int64.
        minlength: the least length of the result, which is otherwise one more than the largest of x.

    Raises:
        TypeError: x that is not of integers.
        ValueError: a negative one, another shape.
    """
    values = raw(x)
    if is_host(x) or not is_array(values):  # a copy: an array may change before the backward pass
        values = np.array(values, dtype=None if is_array(values) or np.size(values) else np.int64)
    if values.dtype.kind not in "iu":
        raise TypeError(f"bincount: x must be integers, got {values.dtype}")
    if values.ndim != 1 or (weights is not None and np.shape(raw(weights)) != values.shape):
        given = "" if weights is None else f" and weights {np.shape(raw(weights))}"
        raise ValueError(f"bincount: x, and weights of its shape, must have one dimension, got {values.shape}{given}")
    minlength = whole_number(minlength, "minlength", "bincount", least=0)
    with on_device_of(values):
        lowest, highest = (int(values.min()), int(values.max())) if values.size else (0, -1)
    if lowest < 0:
        raise ValueError(f"bincount: x must not be negative, got {lowest}")
    if weights is None:
        return _count(x if isinstance(x, TensorBase) else values, minlength)
    require_arrays("bincount", weights)
    weights = weights if numeric(weights, "bincount").dtype.kind == "f" else weights * 1.0
    return put_into_zeros(weights, to_device(values, device_of(raw(weights))), (max(minlength, highest + 1),))


@primitive
def _count(x, minlength):
    return xp(x).bincount(x.astype(np.intp, copy=False), minlength=minlength)  # as take: see minigrad.ops.indexing


_count.no_gradient()
