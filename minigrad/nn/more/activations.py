"""Activations as modules: none has parameters, and each calls the function of its name."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from minigrad import functional as F
from minigrad.nn.module import Module
from minigrad.tensor import Tensor


class Activation(Module):
    """Calls its `function`. Base of the others."""

    function: ClassVar[Any]

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return self.function(x)


class ReLU(Activation):
    """``max(x, 0)``."""

    function = staticmethod(F.relu)


class GELU(Module):
    """``x·Φ(x)``, Φ the distribution function of the standard normal.

    Hendrycks and Gimpel, "Gaussian error linear units", 2016.

    Args:
        approximate: ``"none"`` for the exact Φ, ``"tanh"`` for the paper's approximation.
    """

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        super().__init__()
        if approximate not in ("none", "tanh"):
            raise ValueError(f"GELU: approximate must be 'none' or 'tanh', got {approximate!r}")
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        """The option."""
        return f"approximate={self.approximate!r}"


class SiLU(Activation):
    """``x σ(x)``, also called swish."""

    function = staticmethod(F.silu)


class Sigmoid(Activation):
    """``1 / (1 + e⁻ˣ)``."""

    function = staticmethod(F.sigmoid)


class Tanh(Activation):
    """The hyperbolic tangent."""

    function = staticmethod(F.tanh)


class Identity(Module):
    """Its input, whatever arguments it was made with: a placeholder in a model that may lack a layer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """`x` itself."""
        return x
