"""Integer ids: the rows of a table that they name, and vectors that are 1 at their places."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import ops
from minigrad.arguments import whole_number
from minigrad.device import device_of, is_array, is_host, on_device_of, plain, xp
from minigrad.device.sums import add_at
from minigrad.engine.node import TensorBase
from minigrad.engine.primitive import primitive, public
from minigrad.ops.indexing import put_into_zeros
from minigrad.tensor import as_tensor


@primitive(fresh=True)
def lookup(input, weight, padding_idx=None):
    """``weight[input]``."""
    return xp(weight).take(weight, input.astype(np.intp, copy=False), axis=0)  # on 32 bits, take refuses int64


def lookup_gradient(g, input, weight_shape, padding_idx):
    if padding_idx is not None:
        g = ops.where((input != padding_idx)[..., None], g, 0.0)
    return put_into_zeros(g, input, weight_shape)


def add_rows(buffer: Any, g: Any, input: Any, padding_idx: int | None) -> None:
    """Add each row of g to the row of `buffer` that its id names."""
    if padding_idx is not None:
        g = ops.where((input != padding_idx)[..., None], g, 0.0)
    add_at(buffer, input, g)


lookup.gradient(weight=lookup_gradient)
lookup.accumulating_gradient(weight=add_rows)


@public
def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """The rows of `weight` at the ids in `input`.

    Args:
        input: integer ids (…), a tensor, an array or lists. On the host they are checked against
            [0, num_embeddings), and then sent to where `weight` is.
        weight: (num_embeddings, embedding_dim)
        padding_idx: an id whose row receives no gradient; negative ones count from the end.

    Returns:
        (…, embedding_dim)

    Raises:
        TypeError: ids that are not integers.
        IndexError: an id out of range, negative ones included.
        ValueError: a weight that is no matrix, a padding_idx out of range.
    """
    if len(weight.shape) != 2:
        raise ValueError(f"embedding: weight must be a matrix (num_embeddings, embedding_dim), got shape "
                         f"{tuple(weight.shape)}")
    size = weight.shape[0]
    if padding_idx is not None:
        padding_idx = row_of_padding(padding_idx, size)
    ids = integer_ids(input, "embedding: ids", size)
    # A tensor of ids goes in as one, where it need not be sent: the tape sees it change.
    return lookup(input if isinstance(input, TensorBase) and device_of(ids) == weight.device else ids, weight,
                  padding_idx)


@public
def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """For each id a vector that is 1 at its place and 0 elsewhere; int64, as in PyTorch, and without a gradient.

    Args:
        tensor: integer ids (…), a tensor, an array or lists. On the host they are checked against [0, num_classes).
        num_classes: the length of the vectors; -1 for one more than the largest id, for which a GPU is waited for.

    Returns:
        (…, num_classes)

    Raises:
        TypeError: ids that are not integers.
        IndexError: an id out of range, negative ones included.
        ValueError: another num_classes below 1, or no ids to find the largest of.
    """
    ids = integer_ids(tensor, "one_hot: ids")
    num_classes = whole_number(num_classes, "num_classes", "one_hot", least=None)
    if num_classes < 1 and num_classes != -1:
        raise ValueError(f"one_hot: num_classes must be at least 1, or -1 for one more than the largest id, got "
                         f"{num_classes}")
    if num_classes == -1 and not ids.size:
        raise ValueError("one_hot: give num_classes, which cannot be found where there are no ids")
    with on_device_of(ids):
        size = max(int(ids.max()) + 1, 1) if num_classes == -1 else num_classes
        integer_ids(ids, "one_hot: ids", size)
        return as_tensor((ids[..., None] == xp(ids).arange(size)).astype(np.int64))


def row_of_padding(padding_idx: int, size: int) -> int:
    """The row of a table of that size that `padding_idx` names, counted from the start; ValueError if there is none."""
    padding_idx = whole_number(padding_idx, "padding_idx", "embedding", least=None)
    if not -size <= padding_idx < size:
        raise ValueError(f"embedding: padding_idx {padding_idx} is out of range for {size} rows")
    return padding_idx % size


def integer_ids(values: Any, what: str, size: int | None = None) -> Any:
    """A tensor, an array or nested lists of integers as an array; a copy, unless they are a tensor or on a GPU.

    A list without elements is one of integers. Errors begin with `what`: TypeError for other numbers, IndexError for
    one that is not in [0, size). Those on a GPU are not read back for this.
    """
    array = values._data if isinstance(values, TensorBase) else values
    if is_host(values) or not is_array(array):  # a copy: an array may change before the backward pass
        array = np.array(plain(values, what), None if is_array(values) or np.size(values) else np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what} must be integers, got {array.dtype}")
    if size is not None and is_host(array) and array.size and (array.min() < 0 or array.max() >= size):
        worst = array.min() if array.min() < 0 else array.max()
        raise IndexError(f"{what}: id {int(worst)} is out of range; ids must be in [0, {size})")
    return array
