"""Faster bodies for the hot operations, which run in place of their definitions and are held to them by tests.

`minigrad.kernels.host` has those for NumPy, and `only_definitions` switches all off (docs/kernels.md).
"""

from __future__ import annotations

import importlib

from minigrad.engine.primitive import only_definitions

__all__ = ["only_definitions"]


def install() -> None:
    """Register the bodies that run by default."""
    for name in ("attention", "dropout", "embedding", "indexing", "linear", "linear_cross_entropy", "loss", "matrices",
                 "normalization", "reduction", "selection", "softmax"):
        importlib.import_module(f"minigrad.kernels.host.{name}")
