"""The data of an update, ready where the model is before the update asks for it.

To collate sentences and to check their ids is work for the host, an update is work for the device. So when a GPU has
been given one update, the host prepares the data of the next, and only then waits, if it has to, for the loss of what
is under way (`transformer.training.loop.fit`). It takes no thread: to give work to a GPU is not to wait for it, and
neither is an upload, which copies the ids into page-locked memory and returns; they follow in the order of the GPU's
other work. On the CPU, host and device are one, and nothing is prepared ahead.
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
        parts: those batches, or parts of them, on the model's device; what is computed at a time, one after another.
        sentences: of each part, how many its batch has.
        tokens: how many real target tokens they have together.
        epoch, batch: the batch that comes after them, as in `Progress`: where the run is once the update is made. What
            was prepared, and is then not used, leaves no trace.
    """

    parts: list[Shard]
    sentences: list[int]
    tokens: int
    epoch: int
    batch: int


def prepare(model: Transformer, batches: Sequence[Batch], epoch: int, batch: int, micro_batches: int = 1) -> Group:
    """Send batches to the device of `model`.

    Args:
        model: whose ids they are. They are checked while they are on the host, where that waits for nothing.
        batches: of one update.
        epoch, batch: the next one's place; see `Group`.
        micro_batches: into how many parts each is divided, by rows; fewer rows give fewer parts.

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
