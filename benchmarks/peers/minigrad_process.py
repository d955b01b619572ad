"""minigrad and transformer in one process, with one shard of the batch and one product's thread for each thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workloads import CLIP_NORM, Workload

from peers import Group, Ranked
from peers.minigrad_training import model_of, training
from transformer.training.parallel_gradients import ParallelGradients
from transformer.training.threads import limit_threads


@contextmanager
def trainer(workload: Workload, weights: str, threads: int) -> Iterator[Ranked]:
    """See `peers`."""
    model = model_of(workload, weights)
    with limit_threads(1), ParallelGradients(model, threads) as gradients:
        yield Ranked(Group(), training(model, gradients, clip=CLIP_NORM))
