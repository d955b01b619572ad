"""Vectors along an axis by their length: scaled to length 1, and compared by the angle between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import ops
from minigrad.arguments import public, single_axis
from minigrad.tensor import as_tensor


@public
def normalize(input: Any, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Any:
    """``x / max(‖x‖ₚ, eps)``: the vectors along `axis` scaled to length 1.

    Args:
        input: any shape, floating.
        p: which norm, the `ord` of `minigrad.norm`; `math.inf` for the largest absolute value.
        axis: the axis along which the vectors lie; PyTorch's default is 1.
        eps: below this length a vector is divided by eps, so that zeros stay zeros; at least float16's smallest normal
            number for float16, which rounds 10⁻¹² to 0.

    Raises:
        IndexError: an axis that the input lacks.
    """
    input = as_tensor(input)
    single_axis(axis, input.shape or (1,), "normalize")
    return input / ops.maximum(ops.norm(input, p, axis, keepdims=True), positive(eps, input.dtype))


@public
def cosine_similarity(x1: Any, x2: Any, axis: int = 1, eps: float = 1e-8) -> Any:
    """``x₁ · x₂ / (max(‖x₁‖, eps) max(‖x₂‖, eps))``: the cosine of the angle between vectors along `axis`.

    Args:
        x1, x2: tensors or arrays that broadcast against each other.
        axis: the axis, of what they broadcast to, along which the vectors lie; it is dropped. PyTorch's default is 1.
        eps: a lower bound for each length, as in `normalize`; the similarity to a vector of zeros is 0.

    Raises:
        IndexError: an axis that they lack.
        ValueError: shapes that do not broadcast.
    """
    x1, x2 = as_tensor(x1), as_tensor(x2)
    try:
        shape = np.broadcast_shapes(x1.shape, x2.shape)
    except ValueError:
        raise ValueError(f"cosine_similarity: x1 and x2 must broadcast, got {x1.shape} and {x2.shape}") from None
    single_axis(axis, shape or (1,), "cosine_similarity")
    x1, x2 = (x if x.shape == shape else ops.broadcast_to(x, shape) for x in (x1, x2))
    return (_scaled(x1, axis, eps) * _scaled(x2, axis, eps)).sum(axis=axis)


def _scaled(x: Any, axis: int, eps: float) -> Any:
    """``x / max(‖x‖, eps)``; the squares in the length are of elements up to 1, and so neither overflow nor vanish."""
    if not x.size:
        return x
    largest = ops.max(ops.absolute(x), axis, keepdims=True).detach()
    largest = ops.where((largest > 0) & ops.isfinite(largest), largest, 1.0)  # any number would do: it cancels
    x = x / largest
    return x / ops.maximum(ops.norm(x, 2, axis, keepdims=True), positive(eps, x.dtype) / largest)


def positive(eps: float, dtype: Any) -> float:
    """eps, or the smallest normal number of a floating dtype, if that is larger."""
    return max(eps, float(np.finfo(dtype).tiny)) if dtype.kind == "f" else eps
