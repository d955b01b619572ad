"""Faster bodies of the hot operations, for float32 and float64 in host memory (docs/kernels.md).

A body runs in place of the definition of its operation, which a reader of the definition does not meet. Tests hold each
to its definition; `only_definitions` switches all off.
"""

from minigrad.engine.primitive import only_definitions
from minigrad.kernels import attention, cuda, loss, normalization, relu  # noqa: F401 - importing one registers its body

__all__ = ["only_definitions"]
