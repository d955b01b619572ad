"""Initialisers: each fills a tensor in place and returns it; within `no_init`, those that draw leave it as it is.

Values are drawn on the host from `minigrad.random.generator()` in double precision and then cast, so that one
seed gives the same model on every device, and the same up to rounding in every dtype.
"""

from __future__ import annotations

from math import sqrt

from minigrad.device.local import Setting, Switch
from minigrad.random import generator
from minigrad.tensor import Tensor

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
    return tensor.copy_(generator().uniform(a, b, tensor.shape)) if _drawing.get() else tensor


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fill `tensor` with independent draws from the normal distribution of `mean` and standard deviation `std`."""
    return tensor.copy_(generator().normal(mean, std, tensor.shape)) if _drawing.get() else tensor


def zeros_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with zeros."""
    return tensor.copy_(0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with ones."""
    return tensor.copy_(1.0)


def xavier_uniform_(tensor: Tensor) -> Tensor:
    """Fill `tensor`, a weight of shape (fan_out, fan_in), uniformly on [−a, a) with ``a = √(6 / (fan_in + fan_out))``.

    The variance is ``2 / (fan_in + fan_out)``, which keeps that of activations and that of gradients both near
    constant from layer to layer: Glorot and Bengio, "Understanding the difficulty of training deep
    feedforward neural networks", 2010, equation 16.
    """
    if tensor.ndim != 2 or tensor.size == 0:
        raise ValueError(f"xavier_uniform_: needs a weight of shape (out, in), neither of them 0, got {tensor.shape}")
    bound = sqrt(6 / sum(tensor.shape))
    return uniform_(tensor, -bound, bound)
