"""The squared error: a composition, so its gradient is that of its steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.arguments import numbers_on, public_in_precision
from minigrad.engine.node import TensorBase
from minigrad.functional.loss import check_reduction
from minigrad.tensor import as_tensor


@public_in_precision("float32")
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """The squared error ``(input - target)²``.

    Args:
        input: any shape.
        target: of the same shape; a tensor, or an array or lists, which are sent to where the input is.
        reduction: ``"mean"`` over all elements, ``"sum"``, or ``"none"``: one loss an element.

    Raises:
        ValueError: shapes that differ (an input (N,) and a target (N, 1) would broadcast to N × N differences), an
            unknown reduction.
    """
    check_reduction(reduction, "mse_loss")
    input = as_tensor(input)
    if not isinstance(target, TensorBase):
        dtype = input.dtype if input.dtype.kind == "f" else np.float32
        target = as_tensor(numbers_on(input.device, target, dtype, "mse_loss"))
    if input.dtype.kind != "f" and target.dtype.kind != "f":
        input = input.astype(np.float32)
    if input.shape != target.shape:
        raise ValueError(f"mse_loss: input.shape == target.shape, got {input.shape} and {target.shape}")
    difference = input - target
    squares = difference * difference
    if reduction == "none":
        return squares
    return squares.mean() if reduction == "mean" else squares.sum()
