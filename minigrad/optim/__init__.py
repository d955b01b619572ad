"""Optimizers, gradient clipping, loss scaling and learning-rate schedules, by PyTorch's names."""

from minigrad.compat.namespace import answer
from minigrad.optim.adam import Adam, AdamW
from minigrad.optim.clip import clip_grad_norm_, clip_grad_value_
from minigrad.optim.optimizer import Optimizer
from minigrad.optim.schedule import CosineLR, InverseSquareRootLR, LambdaLR, LinearLR, Scheduler
from minigrad.optim.sgd import SGD
from minigrad.precision.scaler import GradScaler

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "CosineLR",
    "GradScaler",
    "InverseSquareRootLR",
    "LambdaLR",
    "LinearLR",
    "Optimizer",
    "Scheduler",
    "clip_grad_norm_",
    "clip_grad_value_",
]

answer("minigrad.optim")
