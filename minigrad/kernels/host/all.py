"""All host bodies: importing this module registers them."""

from minigrad.kernels.host import (
    attention,
    dropout,
    embedding,
    linear,
    linear_cross_entropy,
    loss,
    normalization,
    softmax,
)

__all__ = ["attention", "dropout", "embedding", "linear", "linear_cross_entropy", "loss", "normalization", "softmax"]
