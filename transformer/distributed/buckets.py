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

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minigrad.device import module_for, on_device, to_device, to_numpy
from minigrad.parallel import Span, Sums, TreeSum, largest_spans

from transformer.distributed.ranks import Ranks

BUCKET_BYTES = 4 * 2**20


class Layout:
    """Which gradients lie in which bucket.

    Args:
        leaves: tensors, in the order in which their gradients are expected. A large one has a bucket of its own;
            smaller ones of a dtype and device share a bucket, which is in the row of buckets where its last leaf is.
        bucket_bytes: a shared bucket of this size or more is full; a leaf of a quarter of it is large.

    Attributes:
        places: of each leaf, by id: its bucket, and its number there.
    """

    def __init__(self, leaves: Iterable[Any], bucket_bytes: int = BUCKET_BYTES) -> None:
        self.buckets: list[list[Any]] = []
        filling: dict[Any, list[Any]] = {}
        for leaf in leaves:
            large = 4 * leaf.data.nbytes >= bucket_bytes
            kind = leaf.dtype, leaf.device, large
            shared = filling.setdefault(kind, [])
            shared.append(leaf)
            if large or sum(other.data.nbytes for other in shared) >= bucket_bytes:
                self.buckets.append(filling.pop(kind))
        self.buckets += filling.values()
        self.places = {id(leaf): (bucket, number) for bucket, own in enumerate(self.buckets)
                       for number, leaf in enumerate(own)}


class Bucket:
    """The gradients of some leaves on their way: a flat array for each span of shards that this rank sums.

    What none of the shards of a span reached is -0.0, the one number that changes no sum. Such zeros at the end make
    the parts of all owners equal.

    Attributes:
        part: how many values each of the `owners` has.
        length: of each flat array, ``part · owners``.
        missing: what has not come yet, as pairs of a span and the number of a leaf.
    """

    def __init__(self, leaves: Sequence[Any], spans: Sequence[Span], owners: int) -> None:
        self.leaves, self.spans = leaves, spans
        self.device, self.dtype = leaves[0].device, leaves[0].dtype
        self.ends = list(itertools.accumulate(leaf.size for leaf in leaves))
        self.part = -(-self.ends[-1] // owners)
        self.length = self.part * owners
        self.missing = {(span, number) for span in spans for number in range(len(leaves))}
        self._sums: dict[Span, Any] = {}

    def put(self, number: int, span: Span, gradient: Any, owned: bool) -> None:
        """Take the sum of a span for a leaf. Memory that is ours and fills the bucket is not copied."""
        self.missing.discard((span, number))
        if owned and gradient.size == self.length and gradient.flags.c_contiguous:
            self._sums[span] = gradient.reshape(-1)
        else:
            end, row = self.ends[number], self._sum(span)
            with on_device(self.device):
                row[end - gradient.size:end] = gradient.reshape(-1)

    def _sum(self, span: Span) -> Any:
        if span not in self._sums:
            with on_device(self.device):
                self._sums[span] = module_for(self.device).full(self.length, -0.0, self.dtype)
        return self._sums[span]

    def take(self) -> list[Any]:
        """The flat arrays of the spans on the host, in their order; the bucket lets go of them."""
        rows = [to_numpy(self._sum(span)) for span in self.spans]
        self._sums = {}
        return rows

    def own_part(self, row: Any, rank: int) -> Any:
        """What a rank owns of a flat array."""
        return row[rank * self.part:(rank + 1) * self.part]

    def entries(self, total: Any) -> Iterator[list[Any]]:
        """The gradients in the total of all ranks, as entries ``[gradient, owned, leaf]``."""
        for leaf, end in zip(self.leaves, self.ends, strict=True):
            yield [total[end - leaf.size:end].reshape(leaf.shape), True, leaf]


class Transport:
    """Carries flat arrays by MPI, through the host's memory.

    Each of the two kinds of message has a communicator of its own, on which all ranks send the buckets in their order.

    Args:
        ranks: those that exchange.
    """

    def __init__(self, ranks: Ranks) -> None:
        from mpi4py import MPI

        self.ranks, self._mpi = ranks, MPI
        self._owners, self._all = ranks.duplicate(), ranks.duplicate()

    def to_owners(self, bucket: Bucket, spans: Sequence[Sequence[Span]]) -> tuple[list[Any], dict[Span, Any], Any]:
        """Send each owner its part of a bucket of which nothing is missing. `spans`: those of each rank.

        Returns:
            Requests, what is here after them by span, and an array that the total of the bucket may have.
        """
        rows, owners = bucket.take(), len(spans)
        sent = rows[0] if len(rows) == 1 else np.concatenate(  # for each owner its part of all rows
            [bucket.own_part(row, owner) for owner in range(owners) for row in rows] or [np.empty(0, bucket.dtype)])
        room = np.empty((sum(map(len, spans)), bucket.part), bucket.dtype)
        part = bucket.part * bucket.dtype.itemsize
        requests = [self._owners.Ialltoallv(self._message(sent, [len(rows) * part] * owners),
                                            self._message(room, [len(own) * part for own in spans]))]
        received = dict(zip(itertools.chain(*spans), room, strict=True))
        return requests, received, sent[:bucket.length] if rows else np.empty(bucket.length, bucket.dtype)

    def to_all(self, bucket: Bucket, part: Any, total: Any) -> list[Any]:
        """Send the total of this rank's part to all; returns requests, after which all parts are in `total`."""
        bucket.own_part(total, self.ranks.rank)[...] = part
        return [self._all.Iallgather(self._mpi.IN_PLACE, total.view(np.uint8))]

    def arrived(self, requests: list[Any]) -> bool:
        """Whether requests are done; lets MPI go on."""
        return bool(self._mpi.Request.Testall(requests))

    def _message(self, values: Any, sizes: Sequence[int]) -> list[Any]:
        """Values as MPI takes them: as many bytes for each rank, one after the other."""
        return [values, sizes, [0, *itertools.accumulate(sizes[:-1])], self._mpi.BYTE]


class Exchange:
    """The sums of the gradients of one batch over all ranks: `put` them as they come, then `finish`.

    Args:
        transport: what carries the buckets.
        layout: which gradients lie in which bucket.
        shards: the number of shards of the batch.
    """

    def __init__(self, transport: Any, layout: Layout, shards: int) -> None:
        ranks = transport.ranks
        self._transport, self._layout, self._shards = transport, layout, shards
        self._spans = [largest_spans(ranks.own(shards, rank), (0, shards)) for rank in range(ranks.size)]
        self._filling = deque(Bucket(leaves, self._spans[ranks.rank], ranks.size) for leaves in layout.buckets)
        self._buckets = list(self._filling)
        self._to_owners, self._to_all = deque[tuple[Any, ...]](), deque[tuple[Any, ...]]()
        self._totals = list[Any]()
        self._reached = set[int]()  # ids of leaves
        self._lock = threading.Lock()

    def put(self, leaf: Any, sums: Sums) -> None:
        """Take the sums of our own shards for a leaf, from any thread, and send what is ready."""
        with self._lock:
            self._place(leaf, sums)
            self._go_on()

    def finish(self, incomplete: Iterable[tuple[Any, Sums]], word: Any = None) -> tuple[list[list[Any]], list[Any]]:
        """Wait for the totals.

        Args:
            incomplete: the leaves that not all of our shards reached, with the sums of the others.
            word: a JSON value for the other ranks.

        Returns:
            Entries ``[gradient, owned, leaf]`` for the leaves that a shard of any rank reached, and the words of all.
        """
        ranks = self._transport.ranks
        for leaf, sums in incomplete:
            self._place(leaf, sums)
        for bucket in self._filling:
            bucket.missing.clear()
        ranks.wait_until(self._go_on)
        places = self._layout.places.items()
        told = ranks.exchange([[place for leaf, place in places if leaf not in self._reached], word])
        unreached = set.intersection(*({tuple(place) for place in missed} for missed, _ in told))
        entries = [entry for bucket, total in zip(self._buckets, self._totals, strict=True)
                   for entry in bucket.entries(to_device(total, bucket.device))
                   if self._layout.places[id(entry[2])] not in unreached]
        return entries, [word for _, word in told]

    def _place(self, leaf: Any, sums: Sums) -> None:
        if id(leaf) not in self._layout.places:
            raise ValueError(f"DistributedGradients: the loss depends on a tensor of shape {tuple(leaf.shape)} that is "
                             "no parameter of the model, so that its gradient is not summed over the ranks")
        self._reached.add(id(leaf))
        bucket, number = self._layout.places[id(leaf)]
        for span, (gradient, owned) in sums.items():
            self._buckets[bucket].put(number, span, gradient, owned)

    def _go_on(self) -> bool:
        """Take each step that is possible now; whether all are done.

        The steps of a kind are in the order of the buckets on every rank, and what begins is looked after before the
        next begins: with a transport on which everything has arrived at once, all steps are in one order on every rank.
        """
        transport = self._transport
        while True:
            while self._to_owners and transport.arrived(self._to_owners[0][1]):
                bucket, _, received, total = self._to_owners.popleft()
                tree = TreeSum(self._shards)
                for span, values in received.items():
                    tree.add(span, values, True)
                self._to_all.append((transport.to_all(bucket, tree.total()[0], total), total))  # type: ignore[index]
            while self._to_all and transport.arrived(self._to_all[0][0]):
                self._totals.append(self._to_all.popleft()[1])
            if not self._filling or self._filling[0].missing:
                return len(self._totals) == len(self._buckets)
            bucket = self._filling.popleft()
            self._to_owners.append((bucket, *transport.to_owners(bucket, self._spans)))
