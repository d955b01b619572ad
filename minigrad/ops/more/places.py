"""Writing at places, each time into a new tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.arguments import numbers_on, public
from minigrad.device import device_of, is_array, is_host, on_device_of, to_device, xp
from minigrad.engine.node import TensorBase
from minigrad.ops.indexing import getitem, raw
from minigrad.ops.selection import where
from minigrad.ops.shape import broadcast_to, concatenate, require_arrays, reshape


@public
def index_put(x: Any, indices: Any, values: Any) -> Any:
    """A copy of x with `values` written at ``[indices]``, what ``x[indices] = values`` would do in place.

    Of several that are written to one place the last stays, and it alone has a gradient.

    Args:
        indices: whatever ``x[indices]`` takes: a tuple of tensors, arrays, lists, slices and ints, or a boolean mask.
        values: a tensor, an array or numbers that broadcast to the shape of ``x[indices]``. The result has the wider
            dtype of both; numbers take that of x, but fractions among integers make it float32.

    Raises:
        IndexError: an index out of range (of those on the host), or that fits no axis.
        ValueError: values that do not broadcast.
        TypeError: values that are no numbers.
    """
    require_arrays("index_put", x)
    device, shape = device_of(raw(x)), tuple(x.shape)
    places = _places(shape, indices, device)
    if not isinstance(values, TensorBase) and not is_array(values):
        values = values_for(x, values)
    try:
        with on_device_of(raw(values)):  # they may be a raw array, which a primitive leaves to the caller's device
            values = reshape(broadcast_to(values, tuple(places.shape)), (-1,))
    except ValueError:
        raise ValueError(f"index_put: values of shape {tuple(values.shape)} do not broadcast to {tuple(places.shape)}, "
                         f"the shape of x[indices] for x of shape {shape}") from None
    flat = reshape(x, (-1,))
    with on_device_of(places):
        places = places.reshape(-1)
        # Each place reads from x and the values in a row: where it stands itself, or the last value written to it.
        sources = xp(places).arange(flat.shape[0], dtype=np.uint64)  # CuPy has no atomic maximum of int64
        written = xp(places).arange(flat.shape[0], flat.shape[0] + places.shape[0], dtype=np.uint64)
        xp(places).maximum.at(sources, places, written)
        sources = sources.astype(np.int64)
    return reshape(getitem(concatenate([flat, values]), sources), shape)


def values_for(x: Any, values: Any) -> Any:
    """Numbers, or lists of them, as an array to be written into x, in its dtype if that has room for them."""
    found, dtype = np.asarray(values), np.dtype(x.dtype)
    if found.dtype.kind == "f" and dtype.kind != "f":
        dtype = np.dtype(np.float32)
    elif found.dtype.kind in "iu" and dtype.kind == "b":
        dtype = np.dtype(np.int64)
    return numbers_on(device_of(raw(x)), values, dtype, "index_put")


def _places(shape: tuple[int, ...], indices: Any, device: str) -> Any:
    """The flat places, on `device`, that an index names. A host index is looked up on the host: it may be wrong."""
    parts = raw(indices)
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
    require_arrays("masked_fill", x, mask)
    if mask.dtype.kind != "b":
        raise TypeError(f"masked_fill: the mask must be boolean, got {mask.dtype}")
    if not isinstance(value, (bool, int, float, np.generic)):
        require_arrays("masked_fill", value)
    return where(mask, value, x)
