"""Prefetch: the data of an update is on the model's device before the update begins.

The host collates sentences and checks their ids; a GPU computes updates. After the host has queued one update on a GPU,
it prepares the data of the next, and only then reads the loss, if a reading is due (`transformer.training.loop.fit`).
This needs no thread: queued work runs on the GPU while the host continues. An upload copies the ids into page-locked
memory and returns, and the GPU receives them in the order of its other work. A model on the CPU has no prefetch, since
host and device are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transformer.data.batches import collate
from transformer.data.examples import Examples
from transformer.training.parallel_gradients import ParallelGradients, Part, Shard, divided


@dataclass(frozen=True, eq=False)
class Group:
    """The batches of one update.

    Attributes:
        parts: the batches, or parts of them, on the model's device; they are computed one after another.
        tokens: the number of real target tokens in all parts.
        epoch, batch: the next batch after the update, as in `Progress`. A group that is prepared and not used changes
            no state.
    """

    parts: list[Part]
    tokens: int
    epoch: int
    batch: int


def prepare(gradients: ParallelGradients, examples: Examples, batches: Sequence[np.ndarray], epoch: int,
            batch: int, micro_batches: int) -> Group:
    """Send what this process computes of some batches to the device of its model.

    Args:
        gradients: what computes them, with the model of the ids, which are checked on the host, without a
            synchronisation.
        examples: the examples.
        batches: the indices of the examples of each batch of one update.
        epoch, batch: the next batch after the update; see `Group`.
        micro_batches: the number of parts of each batch, by rows; fewer rows give fewer parts.

    Raises:
        IndexError: an id outside the vocabulary.
    """
    model, parts, tokens = gradients.model, list[Part](), 0
    for indices in batches:
        steps = examples.steps[indices].astype(np.int64)
        real = examples.source_lengths[indices] + steps
        tokens += int(steps.sum())
        for rows in divided(real, micro_batches):
            shards = [rows[own] for own in divided(real[rows], gradients.shards)]
            first, end = gradients.own(len(shards))
            sent = []
            for own in shards[first:end]:
                ids = collate(examples, indices[own])
                sent.append(Shard(model.source_ids(ids.source), model.target_ids(ids.target[:, 1:])))
            parts.append(Part(sent, first, len(shards)))
    return Group(parts, tokens, epoch, batch)
