"""Masks with two axes that fit an attention in two ways: a row for each query, or for each example of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device import is_host


def refuse_ambiguous(mask: Any, shape: tuple[int, ...], operation: str) -> None:
    """ValueError for a raw mask (T, S) of a batch of B = T, which may be meant as one of padding, (B, S).

    Not for one whose rows are equal, which means the same both ways, nor for a causal one, nor for one like a window or
    blocks along the diagonal: every query attends to itself, some not to the first keys and some not to the last ones.
    Masks on a GPU are not read.
    """
    def is_causal(later: int) -> Any:
        return (mask == np.tri(mask.shape[0], mask.shape[1], later, dtype=bool)).all()

    def is_along_the_diagonal(later: int) -> Any:  # where padding is at one end of all rows
        itself = np.diagonal(mask, later)
        return len(itself) == len(mask) and itself.all() and not mask[:, 0].all() and not mask[:, -1].all()

    ends = {0, shape[-1] - shape[-2]}  # the first query stands at the first key, or the last query at the last key
    if is_host(mask) and not ((mask == mask[:1]).all() or any(map(is_causal, ends)) or
                              any(is_along_the_diagonal(later) for later in ends if later >= 0)):
        ones = "None, " * (len(shape) - 2)
        raise ValueError(f"{operation}: a mask of shape {tuple(mask.shape)} for a batch of {shape[0]} with as many "
                         "queries may have a row for each example or one for each query; give "
                         f"mask[:, {ones}:] for the former, as padding is, or mask[{ones[:-2]}] for the latter")
