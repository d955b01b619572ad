"""The gradient of a table of embeddings, where a padding row gets none: by a product, since NumPy's ``where`` is slow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad.device.writing import add_at
from minigrad.functional.embedding import lookup as lookup_definition
from minigrad.kernels.bodies import faster_body, masks_on_host, on_host
from minigrad.ops.indexing import put_into_zeros


def suits(input, weight, padding_idx):
    """It takes a float32 or float64 table in host memory and a padding row."""
    return padding_idx is not None and on_host(weight) and masks_on_host(input)


@faster_body(lookup_definition, suits, fresh=True)
def lookup(input, weight, padding_idx=None):
    return np.take(weight, input, axis=0)


def lookup_gradient(g, input, weight_shape, padding_idx):
    return put_into_zeros(without_padding(g, input, padding_idx), input, weight_shape)


def add_rows(buffer: Any, g: Any, input: Any, padding_idx: int) -> None:
    """Add each row of g to the row of `buffer` that its id names."""
    add_at(buffer, input.reshape(-1), without_padding(g, input, padding_idx).reshape(-1, g.shape[-1]))


def without_padding(g: Any, input: Any, padding_idx: int) -> Any:
    """g, 0 where the id is that of padding: by a product, unless g is small, or not finite (then that gives NaN)."""
    kept = (input != padding_idx)[..., None]
    if g.size >= 4096:
        with np.errstate(over="ignore", invalid="ignore"):  # what they would warn of is looked at here
            product = g * kept
            flat = product.ravel("K")
            squares = np.dot(flat, flat)
        if math.isfinite(squares):
            return product
    return np.where(kept, g, 0.0)


lookup.gradient(weight=lookup_gradient)
lookup.accumulating_gradient(weight=add_rows)
