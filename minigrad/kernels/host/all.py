"""All host bodies: importing this module registers them."""

from minigrad.kernels.host import (
    attention,
    dropout,
    embedding,
    indexing,
    linear,
    linear_cross_entropy,
    loss,
    matrices,
    normalization,
    selection,
    softmax,
)

__all__ = [
    "attention", "dropout", "embedding", "indexing", "linear", "linear_cross_entropy", "loss", "matrices",
    "normalization", "selection", "softmax",
]
