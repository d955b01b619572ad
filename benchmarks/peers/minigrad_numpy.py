"""minigrad and transformer on plain NumPy, as `transformer train --threads` runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from workloads import BETAS, EPSILON, LEARNING_RATE, PAD, POSITIONS, Workload

import minigrad
from minigrad import optim

from peers import Training
from transformer import Transformer
from transformer.interop import load_pytorch
from transformer.training.memory import keep_freed_memory
from transformer.training.parallel_gradients import ParallelGradients
from transformer.training.threads import limit_threads, shards_of


def model_of(workload: Workload, weights: str) -> Transformer:
    """The model with the weights of the file."""
    model = Transformer(workload.config())
    load_pytorch(model, weights, ignore={POSITIONS})
    return model


@contextmanager
def trainer(workload: Workload, weights: str, threads: int) -> Iterator[Training]:
    """See `peers`."""
    keep_freed_memory()
    minigrad.manual_seed(0)
    model = model_of(workload, weights)
    optimizer = optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0)
    shards = shards_of(model.config, threads, workload.batch * workload.length)
    with limit_threads(threads if shards == 1 else 1), ParallelGradients(model, shards) as gradients:

        def step(batch: tuple[np.ndarray, np.ndarray]) -> float:
            source, labels = batch
            tokens = int((labels != PAD).sum())
            optimizer.zero_grad()
            total = gradients(source, labels, label_smoothing=0.0, denominator=tokens)
            optimizer.step()
            return float(total) / tokens

        def loss(batch: tuple[np.ndarray, np.ndarray]) -> float:
            model.eval()
            with minigrad.no_grad():
                value = model.loss(*batch).item()
            model.train()
            return value

        yield Training(lambda source, labels: (source, labels), step, loss)
