"""PyTorch's ``DistributedDataParallel`` over gloo: processes of one thread each, on this machine.

A rank has every so-manieth sentence of the batch, as PyTorch's ``DistributedSampler`` deals them out. DDP takes the
mean over the ranks of their gradients; a loss is therefore divided by the tokens of the whole batch, and multiplied by
the number of ranks, so that this mean is the gradient of the mean over all tokens, whatever the padding.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from workloads import CLIP_NORM, PAD, Workload

from peers import Group, Ranked, Training
from peers.torch_training import adamw, loaded, prepare

RANK, STORE = "BENCHMARK_RANK", "BENCHMARK_STORE"  # in the environment of the processes that rank 0 starts
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
Batch = tuple[Tensor, Tensor, Tensor, int]  # this rank's source, decoder's input and labels; tokens of all ranks


@contextmanager
def others(size: int, store: str) -> Iterator[None]:
    """Start this command once more for each of the other ranks; they end with the block, at an error at once."""
    started = [subprocess.Popen([sys.executable, *sys.argv], stdin=subprocess.DEVNULL,
                                env={**os.environ, RANK: str(rank), STORE: store}) for rank in range(1, size)]
    try:
        yield
    except BaseException:
        for process in started:
            process.terminate()
        raise
    finally:
        for process in started:
            process.wait()


@contextmanager
def group(size: int, store: str) -> Iterator[Group]:
    """The ranks, as many as `size`; the first starts the others. They find each other by the file `store`."""
    rank = int(os.environ.get(RANK, 0))
    os.environ["GLOO_SOCKET_IFNAME"] = LOOPBACK
    with ExitStack() as stack:
        if rank == 0:
            stack.enter_context(others(size, store))
        distributed.init_process_group("gloo", init_method=f"file://{os.environ.get(STORE, store)}", rank=rank,
                                       world_size=size)
        stack.callback(distributed.destroy_process_group)

        def tell(number: int) -> int:
            told = torch.tensor(number)
            distributed.broadcast(told, 0)
            return int(told)

        def total(value: float) -> float:
            values = torch.tensor(value, dtype=torch.float64)
            distributed.all_reduce(values)
            return float(values)

        yield Group(rank, size, tell, distributed.barrier, total)


def training(model: nn.Module, ranks: Group) -> Training:
    """How `model` is trained, with one gradient for all ranks."""
    replica = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = adamw(model)

    def dealt_out(source: np.ndarray, labels: np.ndarray) -> Batch:
        rows = slice(ranks.rank, None, ranks.size)
        return *prepare(source[rows], labels[rows]), int((labels != PAD).sum())

    def part(called: nn.Module, batch: Batch) -> Tensor:
        source, target, labels, tokens = batch
        return F.cross_entropy(called(source, target).flatten(0, 1), labels.flatten(), ignore_index=PAD,
                               reduction="sum") / tokens

    def step(batch: Batch) -> float:
        optimizer.zero_grad()
        loss = part(replica, batch)
        (ranks.size * loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        return loss.item()

    def loss(batch: Batch) -> float:
        model.eval()
        with torch.no_grad():
            value = part(model, batch).item()
        model.train()
        return value

    return Training(dealt_out, step, loss)


@contextmanager
def trainer(workload: Workload, weights: str, threads: int) -> Iterator[Ranked]:
    """See `peers`; `threads` is the number of ranks."""
    with group(threads, f"{weights}.{os.getpid()}") as ranks:
        yield Ranked(ranks, training(loaded(workload, weights, threads=1), ranks))
