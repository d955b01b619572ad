"""Activations as modules: none has parameters, and each calls the function of its name."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from minigrad import functional as F
from minigrad.arguments import number, whole_number
from minigrad.functional.more.activation import not_zero
from minigrad.nn.module import Module
from minigrad.tensor import Tensor


class Activation(Module):
    """Calls its `function` with its options, which are attributes. Base of the others."""

    function: ClassVar[Any]  # of the input and the options
    options: ClassVar[tuple[str, ...]] = ()

    def forward(self, x: Tensor) -> Tensor:
        """Apply to `x` of any shape."""
        return self.function(x, *[getattr(self, name) for name in self.options])

    def extra_repr(self) -> str:
        """The options."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.options)


class ReLU(Activation):
    """``max(x, 0)``."""

    function = staticmethod(F.relu)


class ReLU6(Activation):
    """``min(max(x, 0), 6)``."""

    function = staticmethod(F.relu6)


class GELU(Activation):
    """``x·Φ(x)``, Φ the distribution function of the standard normal.

    Hendrycks and Gimpel, "Gaussian error linear units", 2016.

    Args:
        approximate: ``"none"`` for the exact Φ (by erf), ``"tanh"`` for the paper's approximation.
    """

    function = staticmethod(F.gelu)
    options = ("approximate",)

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        super().__init__()
        if approximate not in ("none", "tanh"):
            raise ValueError(f"GELU: approximate must be 'none' or 'tanh', got {approximate!r}")
        self.approximate = approximate


class SiLU(Activation):
    """``x σ(x)``, also called swish."""

    function = staticmethod(F.silu)


class Mish(Activation):
    """``x tanh(softplus(x))``."""

    function = staticmethod(F.mish)


class LeakyReLU(Activation):
    """x where it is positive, else ``negative_slope · x``.

    Args:
        negative_slope: the slope where x is not positive.
    """

    function = staticmethod(F.leaky_relu)
    options = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = number(negative_slope, "negative_slope", "LeakyReLU")


class ELU(Activation):
    """x where it is positive, else ``alpha (eˣ - 1)``.

    Args:
        alpha: minus the limit far below 0.
    """

    function = staticmethod(F.elu)
    options = ("alpha",)

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = number(alpha, "alpha", "ELU")


class CELU(Activation):
    """x where it is positive, else ``alpha (exp(x / alpha) - 1)``.

    Args:
        alpha: minus the limit far below 0; not 0.
    """

    function = staticmethod(F.celu)
    options = ("alpha",)

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = not_zero(alpha, "alpha", "CELU")


class SELU(Activation):
    """A scaled ELU that keeps mean 0 and variance 1, see `functional.selu`."""

    function = staticmethod(F.selu)


class Sigmoid(Activation):
    """``1 / (1 + e⁻ˣ)``."""

    function = staticmethod(F.sigmoid)


class LogSigmoid(Activation):
    """``log σ(x)``, which does not underflow."""

    function = staticmethod(F.logsigmoid)


class Hardsigmoid(Activation):
    """``min(max(x + 3, 0), 6) / 6``."""

    function = staticmethod(F.hardsigmoid)


class Tanh(Activation):
    """The hyperbolic tangent."""

    function = staticmethod(F.tanh)


class Hardtanh(Activation):
    """x kept within [min_val, max_val].

    Args:
        min_val: the lower bound.
        max_val: the upper bound, not below the other.
    """

    function = staticmethod(F.hardtanh)
    options = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        self.min_val, self.max_val = number(min_val, "min_val", "Hardtanh"), number(max_val, "max_val", "Hardtanh")
        if min_val > max_val:
            raise ValueError(f"Hardtanh: min_val {min_val} is above max_val {max_val}")


class Softsign(Activation):
    """``x / (1 + |x|)``."""

    function = staticmethod(F.softsign)


class Softplus(Activation):
    """``log(1 + exp(beta · x)) / beta``, a smooth relu.

    Args:
        beta: how sharp its bend is; not 0.
        threshold: where ``beta · x`` is above it, the result is x.
    """

    function = staticmethod(F.softplus)
    options = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = not_zero(beta, "beta", "Softplus")
        self.threshold = number(threshold, "threshold", "Softplus")


class Softmax(Activation):
    """``eˣ / Σ eˣ`` along an axis.

    Args:
        axis: the axis that sums to 1, by default the last; ``dim`` is understood.
    """

    function = staticmethod(F.softmax)
    options = ("axis",)

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = whole_number(axis, "axis", "Softmax", least=None)


class LogSoftmax(Activation):
    """``x - log Σ eˣ`` along an axis: the logarithm of softmax.

    Args:
        axis: the axis along which softmax sums to 1, by default the last; ``dim`` is understood.
    """

    function = staticmethod(F.log_softmax)
    options = ("axis",)

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = whole_number(axis, "axis", "LogSoftmax", least=None)


class Identity(Module):
    """Its input, whatever arguments it was made with: a placeholder in a model that may lack a layer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """`x` itself."""
        return x
