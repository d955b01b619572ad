"""RMSNorm, a layer norm without a mean and a bias."""

from __future__ import annotations

from minigrad import functional as F
from minigrad.arguments import number, whole_number
from minigrad.nn import init
from minigrad.nn.module import Module
from minigrad.nn.parameter import new_parameter
from minigrad.tensor import Tensor


class RMSNorm(Module):
    """Each vector along the last axis divided by its root mean square, then ``·weight``.

    Zhang and Sennrich, "Root mean square layer normalization", 2019, equation 4.

    Args:
        normalized_shape: length of the last axis.
        eps: added to the mean square; None for the machine epsilon of the input's dtype.
        elementwise_affine: whether a weight is learnt.

    Attributes:
        weight: of shape (normalized_shape,), ones at first, or None.
    """

    def __init__(self, normalized_shape: int, eps: float | None = None, elementwise_affine: bool = True) -> None:
        super().__init__()
        self.normalized_shape = whole_number(normalized_shape, "normalized_shape", "RMSNorm")
        self.eps = None if eps is None else number(eps, "eps", "RMSNorm")
        self.weight = new_parameter(normalized_shape) if elementwise_affine else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise `x` of shape (…, normalized_shape)."""
        return F.rms_norm(x, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Size, eps and whether there is a weight."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"
