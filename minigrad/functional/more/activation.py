"""Activations as compositions of operations, element by element; relu, sigmoid and tanh are operations themselves.

Each takes an input of any shape (integers give float32) and is finite, with its gradients to every order, wherever its
input is finite: no branch overflows for the sake of the other.
"""

from __future__ import annotations

from typing import Any

from minigrad import ops
from minigrad.arguments import number, public
from minigrad.functional.compositions import tap
from minigrad.ops import relu, sigmoid, tanh

__all__ = [
    "celu", "elu", "hardsigmoid", "hardtanh", "leaky_relu", "logsigmoid", "mish", "relu", "relu6", "selu", "sigmoid",
    "silu", "softplus", "softsign", "tanh",
]

# Klambauer et al. 2017, arXiv:1706.02515, equation 14: they keep mean 0 and variance 1 from layer to layer.
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def not_zero(value: Any, name: str, operation: str) -> float:
    """A number; ValueError if it is 0."""
    found = number(value, name, operation)
    if found == 0:
        raise ValueError(f"{operation}: {name} must not be 0")
    return found


@public
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """``log(1 + exp(beta · x)) / beta``, a smooth relu; above ``beta · x = threshold`` x itself, as in PyTorch.

    Raises:
        ValueError: beta is 0.
    """
    threshold = number(threshold, "threshold", "softplus")
    beta = not_zero(beta, "beta", "softplus")
    scaled = input * beta
    return ops.where(scaled > threshold, input, ops.logaddexp(scaled, 0.0) / beta)


@public
def logsigmoid(input: Any) -> Any:
    """``log σ(x) = -log(1 + e⁻ˣ)``, which does not underflow."""
    return -ops.logaddexp(-input, 0.0)


@public
def silu(input: Any) -> Any:
    """``x σ(x)``, also called swish (Elfwing, Uchibe and Doya 2017, arXiv:1702.03118)."""
    return input * tap("gate", sigmoid(input))


@public
def mish(input: Any) -> Any:
    """``x tanh(softplus(x))`` (Misra 2019, arXiv:1908.08681)."""
    return input * tap("gate", tanh(softplus(input)))


@public
def elu(input: Any, alpha: float = 1.0) -> Any:
    """x where it is positive, else ``alpha (eˣ - 1)`` (Clevert, Unterthiner and Hochreiter 2015, arXiv:1511.07289).

    The gradient at 0 is alpha.
    """
    alpha = number(alpha, "alpha", "elu")
    positive = input > 0
    return ops.where(positive, input, ops.expm1(ops.where(positive, 0.0, input)) * alpha)


@public
def selu(input: Any) -> Any:
    """A scaled `elu` that keeps mean 0 and variance 1 (Klambauer et al. 2017, arXiv:1706.02515)."""
    return elu(input, SELU_ALPHA) * SELU_SCALE


@public
def celu(input: Any, alpha: float = 1.0) -> Any:
    """x where it is positive, else ``alpha (exp(x / alpha) - 1)``, with slope 1 at 0 (Barron 2017, arXiv:1704.07483).

    Raises:
        ValueError: alpha is 0.
    """
    alpha = not_zero(alpha, "alpha", "celu")
    positive = input > 0
    return ops.where(positive, input, ops.expm1(ops.where(positive, 0.0, input) / alpha) * alpha)


@public
def leaky_relu(input: Any, negative_slope: float = 0.01) -> Any:
    """x where it is positive, else ``negative_slope · x``; the gradient at 0 is negative_slope."""
    return ops.where(input > 0, input, input * number(negative_slope, "negative_slope", "leaky_relu"))


@public
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """x kept within [min_val, max_val]; the gradient on a bound is 0, as in PyTorch (that of `minigrad.clip` is 1).

    Raises:
        ValueError: min_val is above max_val.
    """
    min_val, max_val = number(min_val, "min_val", "hardtanh"), number(max_val, "max_val", "hardtanh")
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val {min_val} is above max_val {max_val}")
    return ops.where(input <= min_val, min_val, ops.where(input >= max_val, max_val, input))


@public
def relu6(input: Any) -> Any:
    """``min(max(x, 0), 6)``; the gradient at 0 and at 6 is 0."""
    return hardtanh(input, 0.0, 6.0)


@public
def hardsigmoid(input: Any) -> Any:
    """``min(max(x + 3, 0), 6) / 6``, a sigmoid of three straight pieces."""
    return relu6(input + 3.0) / 6.0


@public
def softsign(input: Any) -> Any:
    """``x / (1 + |x|)``."""
    return input / (ops.absolute(input) + 1.0)
