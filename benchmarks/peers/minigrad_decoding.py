"""Greedy decoding and beam search of this project."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from workloads import Workload

from peers.minigrad_training import model_of
from transformer.decode import beam_search, greedy
from transformer.training.threads import decoding_threads


@contextmanager
def decoder(workload: Workload, weights: str, threads: int, beam: int, tokens: int,
            device: str = "cpu") -> Iterator[Callable[[np.ndarray], list[list[int]]]]:
    """A function that translates a batch into `tokens` tokens a sentence; `beam` 1 is greedy decoding."""
    model = model_of(workload, weights).to(device)

    def decode(source: np.ndarray) -> list[list[int]]:
        if beam == 1:
            return [best.ids for best in greedy(model, source, tokens)]
        return [best.ids for best, in beam_search(model, source, beam, max_length=tokens)]

    with decoding_threads(model.config, threads, device):
        yield decode
