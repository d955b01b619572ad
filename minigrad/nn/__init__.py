"""Neural-network modules, by PyTorch's names."""

from typing import TYPE_CHECKING

from minigrad.nn import init
from minigrad.nn.containers import ModuleList, Sequential
from minigrad.nn.layers import GELU, Dropout, Embedding, LayerNorm, Linear, ReLU
from minigrad.nn.module import Module
from minigrad.nn.parameter import Parameter

__all__ = [
    "GELU",
    "Dropout",
    "Embedding",
    "LayerNorm",
    "Linear",
    "Module",
    "ModuleList",
    "Parameter",
    "ReLU",
    "Sequential",
    "init",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        """Say where a module of PyTorch is that is not here."""
        from minigrad.names import missing

        told = None if name.startswith("_") else missing("minigrad.nn", name)
        raise AttributeError(told or f"module 'minigrad.nn' has no attribute {name!r}", name=name)
