"""Neural-network modules, by PyTorch's names."""

from minigrad.device.local import evaluating
from minigrad.namespace import answer
from minigrad.nn import init
from minigrad.nn.containers import ModuleDict, ModuleList, ParameterList, Sequential
from minigrad.nn.init import no_init
from minigrad.nn.layers import Dropout, Embedding, LayerNorm, Linear
from minigrad.nn.module import Module
from minigrad.nn.more.activations import (
    CELU,
    ELU,
    GELU,
    SELU,
    Hardsigmoid,
    Hardtanh,
    Identity,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Softsign,
    Tanh,
)
from minigrad.nn.more.convolution import AvgPool1d, Conv1d, Flatten, MaxPool1d, Unflatten
from minigrad.nn.more.losses import (
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
from minigrad.nn.more.normalization import RMSNorm
from minigrad.nn.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "SELU",
    "AvgPool1d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "Conv1d",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "Hardsigmoid",
    "Hardtanh",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MaxPool1d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ParameterList",
    "RMSNorm",
    "ReLU",
    "ReLU6",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Softsign",
    "Tanh",
    "Unflatten",
    "evaluating",
    "init",
    "no_init",
]

answer("minigrad.nn", "minigrad.nn.init")
