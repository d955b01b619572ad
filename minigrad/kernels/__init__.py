"""Faster bodies for the hot operations, which run in place of their definitions and are held to them by tests.

`minigrad.kernels.host` has those for NumPy, and `only_definitions` switches all off (docs/kernels.md).
"""

from minigrad.engine.primitive import only_definitions
from minigrad.kernels.host import (  # noqa: F401 - importing one registers its bodies
    attention,
    dropout,
    embedding,
    indexing,
    linear,
    linear_cross_entropy,
    loss,
    matrices,
    normalization,
    reduction,
    selection,
    softmax,
)

__all__ = ["only_definitions"]
