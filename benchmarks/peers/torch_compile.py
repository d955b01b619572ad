"""PyTorch with ``torch.compile``: the version of `torch_sdpa`, compiled for its shapes. It needs a C++ compiler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from workloads import Workload

from peers import Training
from peers.torch_sdpa import TransformerByHand
from peers.torch_training import loaded, training


@contextmanager
def trainer(workload: Workload, weights: str, threads: int) -> Iterator[Training]:
    """See `peers`."""
    model = loaded(TransformerByHand(workload), weights, threads)
    yield training(model, torch.compile(model, dynamic=False))
