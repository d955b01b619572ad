"""minigrad and transformer, as `transformer train` runs them: on plain NumPy with `--threads`, or on CuPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from resident import MIB
from workloads import BETAS, EPSILON, LEARNING_RATE, PAD, POSITIONS, Workload

import minigrad
from minigrad import optim
from minigrad.device import asarray_on, synchronize
from minigrad.device.memory import pool_use

from peers import Training
from transformer import Transformer
from transformer.interop import load_pytorch
from transformer.training.memory import keep_freed_memory
from transformer.training.parallel_gradients import ParallelGradients
from transformer.training.threads import dividing_threads, limit_threads

Batch = tuple[Any, Any, int]  # source, labels, and how many of the labels are real tokens


def model_of(workload: Workload, weights: str) -> Transformer:
    """The model with the weights of the file, in a process that is ready to train it."""
    keep_freed_memory()
    minigrad.manual_seed(0)
    model = Transformer(workload.config())
    load_pytorch(model, weights, rename=lambda name: None if name == POSITIONS else name)
    return model


def training(model: Transformer, gradients: Callable[..., Any], device: str = "cpu", clip: float | None = None,
             ranks: int = 1) -> Training:
    """Steps of training: `gradients` of the whole batch, clipping if asked for, AdamW.

    Args:
        model: the model.
        gradients: a `ParallelGradients`, or a `DistributedGradients`.
        device: of the model.
        clip: the greatest norm of the gradient.
        ranks: how many processes make a step; each returns that part of the loss.
    """
    optimizer = optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0)

    def prepare(source: np.ndarray, labels: np.ndarray) -> Batch:
        return asarray_on(device, source), asarray_on(device, labels), int((labels != PAD).sum())

    def step(batch: Batch) -> Any:
        source, labels, tokens = batch
        optimizer.zero_grad()
        total = gradients(source, labels, label_smoothing=0.0, denominator=tokens)
        if clip is not None:
            optim.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return total / tokens / ranks

    def loss(batch: Batch) -> float:
        model.eval()
        with minigrad.no_grad():
            value = model.loss(*batch[:2]).item()
        model.train()
        return value / ranks

    return Training(prepare, step, loss, partial(synchronize, device),
                    None if device == "cpu" else lambda: pool_use(device)[1] / MIB)


@contextmanager
def trainer(workload: Workload, weights: str, threads: int, device: str = "cpu") -> Iterator[Training]:
    """See `peers`."""
    model = model_of(workload, weights).to(device)
    dividing = dividing_threads(model.config, threads, workload.batch * workload.length)
    with limit_threads(threads if dividing == 1 else 1), ParallelGradients(model, dividing) as gradients:
        yield training(model, gradients, device)
