"""All kernels: importing this module compiles nothing, but gives each function that has a compiled twin its twin."""

from minigrad.kernels import (
    jit_activation,
    jit_attention,
    jit_dropout,
    jit_loss,
    jit_normalization,
    jit_optim,
    jit_softmax,
)

__all__ = [
    "jit_activation", "jit_attention", "jit_dropout", "jit_loss", "jit_normalization", "jit_optim", "jit_softmax",
]
