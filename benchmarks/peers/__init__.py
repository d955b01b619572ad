"""The programs that are measured: each trains the same Transformer with another library.

A module of a peer imports its library when it is imported, and has a context manager

    trainer(workload, weights, threads) -> Training

whose `weights` is the path of a file from `Workload.write_weights`. Those of `PEERS` take a fourth argument, the name
of a device.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

#: What a table calls a program of train_process.py -> its module here.
PEERS = {"minigrad": "minigrad_training", "PyTorch eager": "torch_training"}
#: The same for programs of rank_process.py, whose steps are made by several processes, or to be compared with those.
RANKED = {"process": "minigrad_process", "ranks": "minigrad_ranks", "PyTorch DDP": "torch_ddp"}


@dataclass(frozen=True)
class Training:
    """A model in training.

    Attributes:
        prepare: source and labels, each (batch, length), as what the two functions below take: done before timing.
        step: forward, cross-entropy over the real target tokens, backward, AdamW; returns the loss before the update,
            a number or what `float` makes one of: on a GPU a step waits for nothing.
        loss: the same loss in evaluation mode.
        settle: waits until the device has computed what it was asked for.
        memory: MiB that the library has taken from the GPU until now; None on the host.
    """

    prepare: Callable[[np.ndarray, np.ndarray], Any]
    step: Callable[[Any], Any]
    loss: Callable[[Any], float]
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
    """

    group: Group
    training: Training


def module(name: str) -> ModuleType:
    """The module of the peer of this name."""
    return importlib.import_module(f"peers.{(PEERS | RANKED)[name]}")
