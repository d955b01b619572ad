"""Masks with two axes that fit an attention in two ways: a row for each query, or for each example of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device import is_host


def refuse_ambiguous(mask: Any, shape: tuple[int, ...], operation: str) -> None:
    """ValueError for a raw mask (T, S) of attention of `shape` (B, …, T, S), B = T, that may be meant as one (B, S).

    Not for one whose rows are equal, which means the same both ways, nor for a causal one. Masks on a GPU are not read.
    """
    def is_causal(later: int) -> Any:
        return (mask == np.tri(mask.shape[0], mask.shape[1], later, dtype=bool)).all()

    if is_host(mask) and not ((mask == mask[:1]).all() or is_causal(0) or is_causal(shape[-1] - shape[-2])):
        ones = "None, " * (len(shape) - 2)
        raise ValueError(f"{operation}: a mask of shape {tuple(mask.shape)} for a batch of {shape[0]} with as many "
                         "queries may have a row for each example or one for each query; give "
                         f"mask[:, {ones}:] for the former, as padding is, or mask[{ones[:-2]}] for the latter")
