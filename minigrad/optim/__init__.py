"""Optimizers, gradient clipping, loss scaling and learning-rate schedules, by PyTorch's names."""

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

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
    "GradScaler",
    "LambdaLR",
    "Optimizer",
    "clip_grad_norm_",
]

if find_spec("minigrad.kernels") is not None:
    importlib.import_module("minigrad.kernels.cuda.many")

if TYPE_CHECKING:
    from minigrad.precision import GradScaler
else:

    def __getattr__(name):
        """Load `GradScaler`, a part of `minigrad.precision`, at its first use."""
        if name == "GradScaler":
            return importlib.import_module("minigrad.precision").GradScaler
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
