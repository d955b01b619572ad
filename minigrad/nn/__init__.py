"""Neural-network modules, by PyTorch's names."""

from typing import TYPE_CHECKING

from minigrad.nn import init
from minigrad.nn.containers import ModuleDict, ModuleList, ParameterList, Sequential
from minigrad.nn.convolution import AvgPool1d, Conv1d, MaxPool1d
from minigrad.nn.flatten import Flatten, Unflatten
from minigrad.nn.layers import GELU, Dropout, Embedding, Linear, ReLU
from minigrad.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineSimilarity,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from minigrad.nn.module import Module
from minigrad.nn.normalization import LayerNorm, RMSNorm
from minigrad.nn.parameter import Parameter

__all__ = [
    "GELU",
    "AvgPool1d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "Conv1d",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LayerNorm",
    "Linear",
    "MSELoss",
    "MaxPool1d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ParameterList",
    "RMSNorm",
    "ReLU",
    "Sequential",
    "SmoothL1Loss",
    "Unflatten",
    "init",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        """Say where a module of PyTorch is that is not here."""
        from minigrad.names import missing

        told = None if name.startswith("_") else missing("minigrad.nn", name)
        raise AttributeError(told or f"module 'minigrad.nn' has no attribute {name!r}", name=name)
