"""Neural-network modules, by PyTorch's names."""

from minigrad.device.local import evaluating
from minigrad.nn import init
from minigrad.nn.containers import ModuleList, Sequential
from minigrad.nn.init import no_init
from minigrad.nn.layers import GELU, Dropout, Embedding, LayerNorm, Linear, ReLU
from minigrad.nn.module import Module
from minigrad.nn.parameter import Parameter

__all__ = [
    "GELU", "Dropout", "Embedding", "LayerNorm", "Linear", "Module", "ModuleList", "Parameter", "ReLU", "Sequential",
    "evaluating", "init", "no_init",
]
