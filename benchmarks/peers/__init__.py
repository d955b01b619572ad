"""The programs that are measured: each trains the same Transformer with another library.

A module of a peer imports its library when it is imported, and has a context manager

    trainer(workload, weights, threads) -> Training

whose `weights` is the path of a file from `Workload.write_weights`. Those of `ON_A_GPU` take a fourth argument, the
name of a device.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

#: The name of a peer -> its module here, and the package whose version a report names.
PEERS = {
    "minigrad": ("minigrad_training", "numpy"),
    "torch-transformer": ("torch_transformer", "torch"),
    "torch-sdpa": ("torch_sdpa", "torch"),
    "torch-compile": ("torch_compile", "torch"),
    "jax": ("jax_jit", "jax"),
    "autograd": ("hips_autograd", "autograd"),
    "gemm": ("gemm_floor", "numpy"),
}
ON_A_GPU = ("minigrad", "torch-transformer", "torch-sdpa")
#: The same for programs of rank_process.py, whose steps are made by several processes, or to be compared with those.
RANKED = {
    "minigrad-process": ("minigrad_process", "numpy"),
    "minigrad-ranks": ("minigrad_ranks", "mpi4py"),
    "torch-ddp": ("torch_ddp", "torch"),
    "torch-ddp-transformer": ("torch_ddp_transformer", "torch"),
}


@dataclass(frozen=True)
class Training:
    """A model in training.

    Attributes:
        prepare: source and labels, each (batch, length), as what the two functions below take: done before timing.
        step: forward, cross-entropy over the real target tokens, backward, AdamW; returns the loss before the update,
            a number or what `float` makes one of: on a GPU a step waits for nothing.
        loss: the same loss in evaluation mode; None if nothing is computed that could be compared.
        settle: waits until the device has computed what it was asked for.
        memory: MiB that the library has taken from the GPU until now; None on the host.
    """

    prepare: Callable[[np.ndarray, np.ndarray], Any]
    step: Callable[[Any], Any]
    loss: Callable[[Any], float] | None
    settle: Callable[[], None] = lambda: None
    memory: Callable[[], float] | None = None


@dataclass(frozen=True)
class Group:
    """The processes that make a step together; each calls the same of these functions in the same order.

    Attributes:
        rank, size: the number of this process, and how many there are.
        tell: the whole number that rank 0 gives; the others wait for it asleep, so that they keep no processor busy.
        meet: returns when all have called it.
        total: the sum of what all give.
    """

    rank: int = 0
    size: int = 1
    tell: Callable[[int], int] = int
    meet: Callable[[], None] = lambda: None
    total: Callable[[float], float] = float


@dataclass(frozen=True)
class Ranked:
    """A model in training, as one process of a group has it.

    Attributes:
        group: the processes.
        training: its losses are this rank's part of the loss of the whole batch: the parts add up to it.
        parts: what this rank's steps since the last call consist of, added up, by name: milliseconds, or MiB.
        exchange: exchanges as many gradients as a step does, without a step; None: there is nothing to measure.
    """

    group: Group
    training: Training
    parts: Callable[[], dict[str, float]]
    exchange: Callable[[], None] | None = None


def module(name: str) -> ModuleType:
    """The module of the peer of this name."""
    return importlib.import_module(f"peers.{(PEERS | RANKED)[name][0]}")
