"""minigrad and transformer in one process, with one shard of the batch and one product's thread for each thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from workloads import BETAS, CLIP_NORM, EPSILON, LEARNING_RATE, PAD, Workload

import minigrad
from minigrad import optim

from peers import Group, Ranked, Training, minigrad_training
from transformer import Transformer
from transformer.training.memory import keep_freed_memory
from transformer.training.parallel_gradients import ParallelGradients
from transformer.training.threads import limit_threads

Batch = tuple[np.ndarray, np.ndarray]


def model_of(workload: Workload, weights: str) -> Transformer:
    """The model with the weights of the file, in a process that is ready to train it."""
    keep_freed_memory()
    minigrad.manual_seed(0)
    return minigrad_training.model_of(workload, weights)


class Steps:
    """Steps of training: `gradients` of the whole batch, clipping, AdamW.

    Args:
        model: the model.
        gradients: a `ParallelGradients`, or a `DistributedGradients`.
        ranks: how many processes make a step; each returns that part of the loss.
    """

    def __init__(self, model: Transformer, gradients: Callable[..., Any], ranks: int = 1) -> None:
        self.model, self.gradients, self.ranks = model, gradients, ranks
        self.optimizer = optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0)

    def step(self, batch: Batch) -> float:
        """One step; see `Training`."""
        source, labels = batch
        tokens = int((labels != PAD).sum())
        self.optimizer.zero_grad()
        total = self.gradients(source, labels, label_smoothing=0.0, denominator=tokens)
        optim.clip_grad_norm_(self.model.parameters(), CLIP_NORM)
        self.optimizer.step()
        return float(total) / tokens / self.ranks

    def loss(self, batch: Batch) -> float:
        """The loss in evaluation mode."""
        self.model.eval()
        with minigrad.no_grad():
            value = self.model.loss(*batch).item()
        self.model.train()
        return value / self.ranks

    def training(self) -> Training:
        """The same as `peers` has it."""
        return Training(lambda source, labels: (source, labels), self.step, self.loss)


@contextmanager
def trainer(workload: Workload, weights: str, threads: int) -> Iterator[Ranked]:
    """See `peers`."""
    model = model_of(workload, weights)
    with limit_threads(1), ParallelGradients(model, threads) as gradients:
        yield Ranked(Group(), Steps(model, gradients).training())
