"""All kernels: importing this module compiles nothing, but gives each function that has a compiled twin its twin."""

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
