"""Initialisers: each fills a tensor in place and returns it; within `no_init`, those that draw leave it as it is.

Values are drawn on the host from `minigrad.random.generator()` in double precision and then cast, so that one
seed gives the same model on every device, and the same up to rounding in every dtype.

For a weight of shape ``(out, in, …)`` the *fan-in* is the number of inputs that one output sums over, and the
*fan-out* the number of outputs that one input reaches.
"""

from __future__ import annotations

from math import prod, sqrt
from typing import Literal

from minigrad.arguments import LARGEST, number
from minigrad.device.local import Setting, Switch
from minigrad.random import generator
from minigrad.tensor import Tensor

Nonlinearity = Literal["linear", "sigmoid", "tanh", "relu", "leaky_relu"]

_drawing = Switch("minigrad.drawing", default=True)


def no_init() -> Setting[bool]:
    """Draw no parameters inside: ``with nn.no_init(): model = Transformer(config)``, or as a decorator.

    For a model whose parameters are loaded next, by `load_state_dict` say: to draw those of a large one takes seconds.
    What a layer would draw is 0 instead, in memory that is taken when it is first written to. Constants, such as the
    ones of a norm, are set as ever. No random number is drawn, so the random state stays as it is: later draws are
    those of a program that never made the model.

    Local to the current thread or task; blocks nest.
    """
    return _drawing.set_to(False)


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Fill `tensor` with independent draws from the uniform distribution on [a, b)."""
    a = number(a, "a", "uniform_", -LARGEST, number(b, "b", "uniform_", -LARGEST, LARGEST))
    return tensor.copy_(generator().uniform(a, b, tensor.shape)) if _drawing.get() else tensor


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fill `tensor` with independent draws from the normal distribution of `mean` and standard deviation `std`."""
    mean, std = number(mean, "mean", "normal_"), number(std, "std", "normal_", 0)
    return tensor.copy_(generator().normal(mean, std, tensor.shape)) if _drawing.get() else tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill `tensor` with the value `val`."""
    return tensor.copy_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with ones."""
    return constant_(tensor, 1.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform on [−a, a) with ``a = gain·√(6 / (fan_in + fan_out))``.

    The variance is ``2·gain² / (fan_in + fan_out)``, which keeps that of activations and that of gradients both near
    constant from layer to layer: Glorot and Bengio, "Understanding the difficulty of training deep
    feedforward neural networks", 2010, equation 16.

    Args:
        tensor: a weight of shape (out, in, …).
        gain: a factor for what follows the layer, see `calculate_gain`.
    """
    fan_in, fan_out = _fans(tensor, "xavier_uniform_")
    bound = gain * sqrt(6 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal with mean 0 and the variance of `xavier_uniform_`, ``2·gain² / (fan_in + fan_out)``.

    `tensor` and `gain` are as there.
    """
    fan_in, fan_out = _fans(tensor, "xavier_normal_")
    return normal_(tensor, 0.0, gain * sqrt(2 / (fan_in + fan_out)))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: Literal["fan_in", "fan_out"] = "fan_in",
    nonlinearity: Nonlinearity = "leaky_relu",
) -> Tensor:
    """Uniform on [−b, b) with ``b = gain·√(3 / fan)``, hence variance ``gain² / fan``.

    It keeps the variance of activations constant through layers of rectifiers: He et al., "Delving deep
    into rectifiers", 2015, equations 10 and 15.

    Args:
        tensor: a weight of shape (out, in, …).
        a: negative slope of the leaky rectifier; ignored by the other nonlinearities.
        mode: ``"fan_in"`` keeps the variance in the forward pass, ``"fan_out"`` in the backward pass.
        nonlinearity: decides the gain, see `calculate_gain`.
    """
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"kaiming_uniform_: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    fan_in, fan_out = _fans(tensor, "kaiming_uniform_")
    bound = calculate_gain(nonlinearity, a) * sqrt(3 / (fan_in if mode == "fan_in" else fan_out))
    return uniform_(tensor, -bound, bound)


def calculate_gain(nonlinearity: Nonlinearity, param: float = 0.01) -> float:
    """The factor by which weights grow to make up for what `nonlinearity` takes from the variance.

    1 for linear and sigmoid, 5/3 for tanh, √2 for relu, ``√(2 / (1 + param²))`` for leaky_relu of slope
    `param`.
    """
    gains = {
        "linear": 1.0,
        "sigmoid": 1.0,
        "tanh": 5 / 3,
        "relu": sqrt(2),
        "leaky_relu": sqrt(2 / (1 + param**2)),
    }
    if nonlinearity not in gains:
        raise ValueError(f"calculate_gain: unknown nonlinearity {nonlinearity!r}; known are {', '.join(gains)}")
    return gains[nonlinearity]


def _fans(tensor: Tensor, operation: str) -> tuple[int, int]:
    """Fan-in and fan-out; axes beyond the second (a convolution's) count for both."""
    if tensor.ndim < 2 or tensor.size == 0:
        raise ValueError(f"{operation}: needs a weight of shape (out, in, ...), none of them 0, got {tensor.shape}")
    field = prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field
