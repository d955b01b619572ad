"""The gradient of a table of embeddings: rows are added once each, and those of padding left out by a product."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.functional.embedding import lookup as lookup_definition
from minigrad.kernels.bodies import faster_body, on_host
from minigrad.kernels.host.indexing import add_at
from minigrad.kernels.host.selection import keep_where
from minigrad.ops.shape import rows


@faster_body(lookup_definition, on_host, fresh=True)
def lookup(input, weight, padding_idx=None):
    return np.take(weight, input.astype(np.intp, copy=False), axis=0)


def lookup_gradient(g, input, weight_shape, padding_idx):
    out = np.zeros(weight_shape, g.dtype)
    add_rows(out, g, input, padding_idx)
    return out


def add_rows(buffer: Any, g: Any, input: Any, padding_idx: int | None) -> None:
    """Add each row of g to the row of `buffer` that its id names."""
    if padding_idx is not None:
        g = keep_where((input != padding_idx)[..., None], g)
    add_at(buffer, input.reshape(-1), rows(g))


lookup.gradient(weight=lookup_gradient)
lookup.accumulating_gradient(weight=add_rows)
