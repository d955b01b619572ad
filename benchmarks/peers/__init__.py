"""The programs that are measured: each trains the same Transformer with another library.

A module of a peer imports its library when it is imported, and has a context manager

    trainer(workload, weights, threads) -> Training

whose `weights` is the path of a file from `Workload.write_weights`.
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
    "minigrad": ("minigrad_numpy", "numpy"),
    "minigrad-jit": ("minigrad_jit", "numba"),
    "torch-transformer": ("torch_transformer", "torch"),
    "torch-sdpa": ("torch_sdpa", "torch"),
    "torch-compile": ("torch_compile", "torch"),
    "jax": ("jax_jit", "jax"),
    "autograd": ("hips_autograd", "autograd"),
    "gemm": ("gemm_floor", "numpy"),
}


@dataclass(frozen=True)
class Training:
    """A model in training.

    Attributes:
        prepare: source and labels, each (batch, length), as what the two functions below take: done before timing.
        step: forward, cross-entropy over the real target tokens, backward, AdamW; returns the loss before the update.
        loss: the same loss in evaluation mode; None if nothing is computed that could be compared.
    """

    prepare: Callable[[np.ndarray, np.ndarray], Any]
    step: Callable[[Any], float]
    loss: Callable[[Any], float] | None


def module(name: str) -> ModuleType:
    """The module of the peer of this name."""
    return importlib.import_module(f"peers.{PEERS[name][0]}")
