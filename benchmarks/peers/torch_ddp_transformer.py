"""The same as `torch_ddp`, with ``nn.Transformer``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workloads import Workload

from peers import Ranked
from peers.torch_ddp import replicas
from peers.torch_transformer import TransformerOfPyTorch


@contextmanager
def trainer(workload: Workload, weights: str, threads: int) -> Iterator[Ranked]:
    """See `peers`; `threads` is the number of ranks."""
    with replicas(TransformerOfPyTorch, workload, weights, threads) as ranked:
        yield ranked
