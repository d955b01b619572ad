"""Optimizers, gradient clipping and learning-rate schedules, by PyTorch's names."""

import importlib
from importlib.util import find_spec

from minigrad.optim.adam import Adam, AdamW
from minigrad.optim.clip import clip_grad_norm_
from minigrad.optim.optimizer import Optimizer
from minigrad.optim.schedule import CosineLR, LambdaLR
from minigrad.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "CosineLR",
    "LambdaLR",
    "Optimizer",
    "clip_grad_norm_",
]

if find_spec("minigrad.kernels") is not None:
    importlib.import_module("minigrad.kernels.cuda.many")
