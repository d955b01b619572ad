"""All compiled bodies: importing this module compiles nothing, but registers them."""

from minigrad.kernels.compiled import (
    activation,
    attention,
    dropout,
    loss,
    normalization,
    optim,
    softmax,
)

__all__ = [
    "activation", "attention", "dropout", "loss", "normalization", "optim", "softmax",
]
