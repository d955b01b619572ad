"""Integer ids as one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.arguments import public, whole_number
from minigrad.device import on_device_of, xp
from minigrad.functional.embedding import integer_ids
from minigrad.tensor import as_tensor


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
