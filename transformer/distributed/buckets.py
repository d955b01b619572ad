"""The sum of the gradients of all ranks, with the same bits whatever their number, while the backward pass goes on.

A batch is divided into shards, and each rank has neighbours among them. The gradients of all parameters lie in
*buckets* of a few MB, in the order in which a backward pass completes them. Each rank *owns* a part of every bucket:

    all-to-all   each rank sends every owner its sums of that owner's part
    tree sum     the owner adds them up, in the order of `minigrad.parallel.TreeSum`, which the number of shards fixes
    all-gather   each owner sends its total to all

This moves as many bytes as a ring would, 2·(N−1)/N of the gradients from each of N ranks. MPI's own sum does, too, but
may add in any order, so that its bits would depend on N. A bucket starts when its last gradient is there, and takes its
next step when another gradient arrives; `Exchange.finish` waits for what is left.
"""

import itertools
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minigrad.device import module_for, on_device, to_device, to_numpy
from minigrad.parallel import Span, Sums, TreeSum, largest_spans

BUCKET_BYTES = 4 * 2**20


def divided(leaves: Iterable[Any]) -> Iterator[list[Any]]:
    """The leaves of each bucket.

    A large one, of a quarter of `BUCKET_BYTES`, has a bucket of its own; smaller ones of a dtype share a bucket until
    it is full, and it is in the row of buckets where its last leaf is.
    """
    filling: dict[Any, list[Any]] = {}
    for leaf in leaves:
        large = 4 * leaf.data.nbytes >= BUCKET_BYTES
        kind = leaf.dtype, large
        shared = filling.setdefault(kind, [])
        shared.append(leaf)
        if large or sum(other.data.nbytes for other in shared) >= BUCKET_BYTES:
            yield filling.pop(kind)
    yield from filling.values()


class Bucket:
    """The gradients of some leaves on their way: for each span of shards that this rank sums, an array (owners, part).

    What none of the shards of a span reached is -0.0, the one number that changes no sum. Such zeros at the end make
    the parts of all owners equal.

    Attributes:
        missing: how many sums have not come yet, one for each leaf and span.
    """

    def __init__(self, leaves: Sequence[Any], spans: Sequence[Span], owners: int) -> None:
        self.leaves, self.spans, self.device, self.dtype = leaves, spans, leaves[0].device, leaves[0].dtype
        self.ends = dict(zip(map(id, leaves), itertools.accumulate(leaf.size for leaf in leaves), strict=True))
        self.shape = owners, -(-self.ends[id(leaves[-1])] // owners)
        self.missing = len(leaves) * len(spans)
        self._sums: dict[Span, Any] = {}

    def put(self, leaf: Any, span: Span, gradient: Any, owned: bool) -> None:
        """Take the sum of a span for a leaf. Memory that is ours and fills the bucket is not copied."""
        self.missing -= 1
        if owned and gradient.size == self.shape[0] * self.shape[1] and gradient.flags.c_contiguous:
            self._sums[span] = gradient.reshape(self.shape)
        else:
            with on_device(self.device):
                end = self.ends[id(leaf)]
                self._sum(span).reshape(-1)[end - gradient.size:end] = gradient.reshape(-1)

    def _sum(self, span: Span) -> Any:
        if span not in self._sums:
            self._sums[span] = module_for(self.device).full(self.shape, -0.0, self.dtype)
        return self._sums[span]

    def take(self) -> list[Any]:
        """The arrays of the spans on the host, in their order; the bucket lets go of them."""
        with on_device(self.device):
            sums = [to_numpy(self._sum(span)) for span in self.spans]
        self._sums = {}
        return sums

    def entries(self, total: Any) -> list[Any]:
        """``[gradient, owned, leaf]`` for each leaf, of the total of all ranks."""
        flat = to_device(total.reshape(-1), self.device)
        return [[flat[end - leaf.size:end].reshape(leaf.shape), True, leaf]
                for leaf, end in zip(self.leaves, self.ends.values(), strict=True)]


class Exchange:
    """The sums of the gradients of one batch over all ranks: `put` them as they come, then `finish`.

    Args:
        ranks: those that exchange.
        leaves: tensors, in the order in which their gradients are expected.
        shards: the number of shards of the batch.
    """

    def __init__(self, ranks: Any, leaves: Iterable[Any], shards: int) -> None:
        self._ranks, self._shards, self._lock = ranks, shards, threading.Lock()
        self._spans = [largest_spans(ranks.own(shards, rank), (0, shards)) for rank in range(ranks.size)]
        self._buckets = [Bucket(own, self._spans[ranks.rank], ranks.size) for own in divided(leaves)]
        self._bucket_of = {id(leaf): bucket for bucket in self._buckets for leaf in bucket.leaves}
        self._filling, self._totals, self._reached = deque(self._buckets), list[Any](), set[int]()
        self._to_owners, self._to_all = deque[Any](), deque[Any]()

    def put(self, leaf: Any, sums: Sums) -> None:
        """Take the sums of our own shards for a leaf, from any thread, and send what is ready."""
        with self._lock:
            self._place(leaf, sums)
            self._go_on()

    def finish(self, incomplete: Iterable[tuple[Any, Sums]], word: Any = None) -> tuple[list[Any], tuple[Any, ...]]:
        """Wait for the totals.

        Args:
            incomplete: the leaves that not all of our shards reached, with the sums of the others.
            word: a JSON value for the other ranks.

        Returns:
            Entries ``[gradient, owned, leaf]`` for the leaves that a shard of any rank reached, and the words of all.
        """
        for leaf, sums in incomplete:
            self._place(leaf, sums)
        for bucket in self._filling:
            bucket.missing = 0
        self._ranks.wait_until(self._go_on)
        told = self._ranks.exchange([[leaf in self._reached for leaf in self._bucket_of], word])
        reached, words = zip(*told, strict=True)
        entries = itertools.chain(*map(Bucket.entries, self._buckets, self._totals))
        return [*itertools.compress(entries, map(any, zip(*reached, strict=True)))], words

    def _place(self, leaf: Any, sums: Sums) -> None:
        if id(leaf) not in self._bucket_of:
            raise ValueError(f"DistributedGradients: the loss depends on a tensor of shape {tuple(leaf.shape)} that is "
                             "no parameter of the model, so that its gradient is not summed over the ranks")
        self._reached.add(id(leaf))
        for span, (gradient, owned) in sums.items():
            self._bucket_of[id(leaf)].put(leaf, span, gradient, owned)

    def _go_on(self) -> bool:
        """Take each step that is possible now, those of a kind in the order of the buckets; whether all are done."""
        ranks, spans = self._ranks, self._spans
        while self._filling and not self._filling[0].missing:
            bucket = self._filling.popleft()
            sums, total = bucket.take(), np.empty(bucket.shape, bucket.dtype)
            sent = sums[0] if len(sums) == 1 else np.concatenate([total[:, :0], *sums], axis=1)
            self._to_owners.append((*ranks.all_to_all(sent, [total.shape[1] * len(own) for own in spans]), total))
        while self._to_owners and ranks.arrived(self._to_owners[0][0]):
            _, received, total = self._to_owners.popleft()
            tree, every = TreeSum(self._shards), [*itertools.chain(*spans)]
            for span, values in zip(every, received.reshape(len(every), -1), strict=True):
                tree.add(span, values, True)
            total[ranks.rank] = tree.total()[0]  # type: ignore[index]
            self._to_all.append((ranks.all_gather(total), total))
        while self._to_all and ranks.arrived(self._to_all[0][0]):
            self._totals.append(self._to_all.popleft()[1])
        return len(self._totals) == len(self._buckets)
