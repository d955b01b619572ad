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

from transformer.data.batches import Batch
from transformer.model import Transformer
from transformer.training.parallel_gradients import Shard, split


@dataclass(frozen=True, eq=False)
class Group:
    """The batches of one update.

    Attributes:
        parts: the batches, or parts of them, on the model's device; they are computed one after another.
        sentences: for each part, the number of sentences in its batch.
        tokens: the number of real target tokens in all parts.
        epoch, batch: the next batch after the update, as in `Progress`. A group that is prepared and not used changes
            no state.
    """

    parts: list[Shard]
    sentences: list[int]
    tokens: int
    epoch: int
    batch: int


def prepare(model: Transformer, batches: Sequence[Batch], epoch: int, batch: int, micro_batches: int = 1) -> Group:
    """Send batches to the device of `model`.

    Args:
        model: the model of the ids, which are checked on the host, without a synchronisation.
        batches: the batches of one update.
        epoch, batch: the next batch after the update; see `Group`.
        micro_batches: the number of parts of each batch, by rows; fewer rows give fewer parts.

    Raises:
        IndexError: an id outside the vocabulary.
    """
    parts, sentences = list[Shard](), list[int]()
    for ids in batches:
        whole = Shard(ids.source, ids.target[:, 1:])
        divided = [whole] if micro_batches == 1 else split(*whole, model.config.pad_id, micro_batches)
        parts += divided
        sentences += [len(ids.source)] * len(divided)
    sent = [Shard(model.source_ids(part.source), model.target_ids(part.labels)) for part in parts]
    return Group(sent, sentences, sum(ids.num_target_tokens for ids in batches), epoch, batch)
