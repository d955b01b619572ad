"""Dropout in place."""

from __future__ import annotations

import numpy as np

from minigrad.functional.dropout import dropout_with_mask as dropout_definition
from minigrad.kernels.bodies import faster_body, on_host


def suits(input, mask, p):
    """It takes float32 and float64 arrays in host memory, a boolean mask and a probability."""
    return on_host(input) and getattr(mask, "dtype", None) == np.bool_ and type(p) is float and 0 <= p < 1


@faster_body(dropout_definition, suits, fresh=True)
def dropout_with_mask(input, mask, p):
    out = input * mask
    out *= 1 / (1 - p)
    return out


dropout_with_mask.gradient(input=lambda g, mask, p: dropout_with_mask.forward(g, mask, p))
