"""The Tensor that people use, and how one is made."""

from minigrad.tensor.tensor import Tensor, as_tensor

__all__ = ["Tensor", "as_tensor"]
