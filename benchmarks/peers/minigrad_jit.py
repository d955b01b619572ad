"""The same as `minigrad_training`, with the compiled kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workloads import Workload

import minigrad
from minigrad.kernels import load

from peers import Training, minigrad_training

load()  # Numba, which is a part of what is imported


@contextmanager
def trainer(workload: Workload, weights: str, threads: int) -> Iterator[Training]:
    """See `peers`."""
    with minigrad.jit(), minigrad_training.trainer(workload, weights, threads) as training:
        yield training
