"""Neural-network modules, by PyTorch's names."""

from minigrad.device.local import evaluating
from minigrad.nn import init
from minigrad.nn.containers import ModuleList, Sequential
from minigrad.nn.init import no_init
from minigrad.nn.layers import Dropout, Embedding, LayerNorm, Linear
from minigrad.nn.module import Module
from minigrad.nn.more.activations import GELU, Identity, ReLU, Sigmoid, SiLU, Tanh
from minigrad.nn.more.normalization import RMSNorm
from minigrad.nn.parameter import Parameter

__all__ = [
    "GELU", "Dropout", "Embedding", "Identity", "LayerNorm", "Linear", "Module", "ModuleList", "Parameter", "RMSNorm",
    "ReLU", "Sequential", "SiLU", "Sigmoid", "Tanh", "evaluating", "init", "no_init",
]
