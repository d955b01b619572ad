"""Activations as modules: none has parameters, and each calls the function of its name."""

from __future__ import annotations

from typing import Any, Literal

from minigrad import functional as F
from minigrad.arguments import public
from minigrad.nn.module import Module
from minigrad.tensor import Tensor


class ReLU(Module):
    """``max(x, 0)``."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.relu(x)


class ReLU6(Module):
    """``min(max(x, 0), 6)``."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.relu6(x)


class GELU(Module):
    """``x·Φ(x)``, Φ the distribution function of the standard normal.

    Hendrycks and Gimpel, "Gaussian error linear units", 2016.

    Args:
        approximate: ``"none"`` for the exact Φ (by erf), ``"tanh"`` for the paper's approximation.
    """

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        super().__init__()
        if approximate not in ("none", "tanh"):
            raise ValueError(f"GELU: approximate must be 'none' or 'tanh', got {approximate!r}")
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.gelu(x, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Which formula."""
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """``x σ(x)``, also called swish."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.silu(x)


class Mish(Module):
    """``x tanh(softplus(x))``."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.mish(x)


class LeakyReLU(Module):
    """x where it is positive, else ``negative_slope · x``.

    Args:
        negative_slope: the slope where x is not positive.
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        """The slope."""
        return f"negative_slope={self.negative_slope}"


class ELU(Module):
    """x where it is positive, else ``alpha (eˣ - 1)``.

    Args:
        alpha: minus the limit far below 0.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.elu(x, self.alpha)

    def extra_repr(self) -> str:
        """The limit."""
        return f"alpha={self.alpha}"


class CELU(Module):
    """x where it is positive, else ``alpha (exp(x / alpha) - 1)``.

    Args:
        alpha: minus the limit far below 0; not 0.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        if alpha == 0:
            raise ValueError("CELU: alpha must not be 0")
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.celu(x, self.alpha)

    def extra_repr(self) -> str:
        """The limit."""
        return f"alpha={self.alpha}"


class SELU(Module):
    """A scaled ELU that keeps mean 0 and variance 1, see `functional.selu`."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.selu(x)


class Sigmoid(Module):
    """``1 / (1 + e⁻ˣ)``."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.sigmoid(x)


class LogSigmoid(Module):
    """``log σ(x)``, which does not underflow."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.logsigmoid(x)


class Hardsigmoid(Module):
    """``min(max(x + 3, 0), 6) / 6``."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.hardsigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.tanh(x)


class Hardtanh(Module):
    """x kept within [min_val, max_val].

    Args:
        min_val: the lower bound.
        max_val: the upper bound, not below the other.
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        if min_val > max_val:
            raise ValueError(f"Hardtanh: min_val {min_val} is above max_val {max_val}")
        self.min_val, self.max_val = min_val, max_val

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.hardtanh(x, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """The bounds."""
        return f"min_val={self.min_val}, max_val={self.max_val}"


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.softsign(x)


class Softplus(Module):
    """``log(1 + exp(beta · x)) / beta``, a smooth relu.

    Args:
        beta: how sharp its bend is; not 0.
        threshold: where ``beta · x`` is above it, the result is x.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        if beta == 0:
            raise ValueError("Softplus: beta must not be 0")
        self.beta, self.threshold = beta, threshold

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return F.softplus(x, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Both numbers."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(Module):
    """``eˣ / Σ eˣ`` along an axis.

    Args:
        axis: the axis that sums to 1, by default the last; ``dim`` is understood.
    """

    @public
    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape that has the axis."""
        return F.softmax(x, self.axis)

    def extra_repr(self) -> str:
        """The axis."""
        return f"axis={self.axis}"


class LogSoftmax(Module):
    """``x - log Σ eˣ`` along an axis: the logarithm of softmax.

    Args:
        axis: the axis along which softmax sums to 1, by default the last; ``dim`` is understood.
    """

    @public
    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape that has the axis."""
        return F.log_softmax(x, self.axis)

    def extra_repr(self) -> str:
        """The axis."""
        return f"axis={self.axis}"


class Identity(Module):
    """Its input, whatever arguments it was made with: a placeholder in a model that may lack a layer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """`x` itself."""
        return x
