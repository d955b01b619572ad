"""The exchange of gradients gives every rank the bits of one process, whatever comes when and where.

The ranks are threads here, and what carries the buckets is slow at random. test_ranks_on_a_gpu.py has the messages of a
real MPI.
"""

import threading
import time
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad import Tensor
from minigrad.parallel import GradientSum
from minigrad.tensor.gradients import arrive

from transformer.distributed.buckets import Exchange, Layout
from transformer.distributed.ranks import Alone

SPECIAL = [1.0, 1e-4, 3.0, -0.0, 0.0, 6e-8, 1e-45, 6e4, -6e4, np.inf, -np.inf, np.nan]


class ThreadRank(Alone):
    """A rank that is a thread; `world` is a dictionary that all of them share."""

    def __init__(self, rank, size, world):
        self.rank, self.size, self.world = rank, size, world

    def exchange(self, value):
        told = self.world.setdefault("exchange", {})
        told[self.rank] = value
        self.wait_until(lambda: len(told) == self.size)
        return [told[rank] for rank in range(self.size)]

    def wait_until(self, done):
        deadline = time.monotonic() + 20
        while not done():
            assert time.monotonic() < deadline, "the exchange does not end"
            time.sleep(0)


class Carrier:
    """A transport over the world: an arrival is seen when all ranks have sent, and often later."""

    def __init__(self, ranks, seed):
        self.ranks, self.random, self.counts = ranks, Random(seed), {"owners": 0, "all": 0}

    def _posted(self, kind):
        """What the ranks have sent in the next exchange of a kind, by rank."""
        key = kind, self.counts[kind]
        self.counts[kind] += 1
        return self.ranks.world.setdefault(key, {})

    def to_owners(self, bucket, spans):
        rows, me = bucket.take(), self.ranks.rank
        posted = self._posted("owners")
        posted[me] = [row.reshape(self.ranks.size, bucket.part).copy() for row in rows]
        received = {}

        def fetch():
            received.update({span: row[me].copy() for rank, own in enumerate(spans)
                             for span, row in zip(own, posted[rank], strict=True)})
        return [(posted, fetch)], received, rows[0] if rows else np.empty(bucket.length, bucket.dtype)

    def to_all(self, bucket, part, total):
        posted = self._posted("all")
        posted[self.ranks.rank] = part.copy()
        total[...] = np.nan

        def fetch():
            total[:] = np.concatenate([posted[rank] for rank in range(self.ranks.size)])
        return [(posted, fetch)]

    def arrived(self, requests):
        (posted, fetch), = requests
        if len(posted) < self.ranks.size or self.random.random() < 0.3:
            return False
        fetch()
        return True


def leaves_of(shapes_and_dtypes):
    return [Tensor(np.zeros(shape, dtype), requires_grad=True, dtype=dtype) for shape, dtype in shapes_and_dtypes]


def of_one_process(leaves, gradients, shards):
    total = GradientSum(shards)
    for shard in range(shards):
        for number, leaf in enumerate(leaves):
            if gradients[shard][number] is not None:
                total.receiver(shard)(leaf, gradients[shard][number], False)
    total.deliver()


def of_ranks(leaves, gradients, shards, size, bucket_bytes, seed, layout_order):
    """The entries that each rank gets."""
    world, results, errors = {}, [None] * size, []

    def work(rank):
        try:
            ranks, random = ThreadRank(rank, size, world), Random(f"{seed} {rank}")
            layout = Layout([leaves[number] for number in layout_order], bucket_bytes)
            exchange = Exchange(Carrier(ranks, seed + rank), layout, shards)
            first, end = ranks.own(shards)
            total = GradientSum(shards, (first, end), exchange.put)
            coming = [(shard, number) for shard in range(first, end) for number in range(len(leaves))
                      if gradients[shard][number] is not None]
            random.shuffle(coming)
            with np.errstate(all="ignore"):
                for shard, number in coming:
                    total.receiver(shard)(leaves[number], gradients[shard][number], False)
                results[rank] = exchange.finish(total.incomplete())[0]
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def same_bits(one, other):
    """Equal with the sign of zero; which of two NaN a sum hands on depends on the processor."""
    return (one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other, equal_nan=True)
            and np.array_equal(np.signbit(one) & ~np.isnan(one), np.signbit(other) & ~np.isnan(other)))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_every_rank_gets_the_bits_of_one_process(data):
    size, shards = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 9))
    kinds = data.draw(st.lists(st.tuples(st.sampled_from([(), (1,), (3,), (2, 5), (0,), (40,)]),
                                         st.sampled_from(["float16", "float32", "float64"])), min_size=1, max_size=6))
    random = Random(data.draw(st.integers(0, 2**32)))
    gradients = [[None if random.random() < 0.2 else
                  np.array([random.choice([*SPECIAL, random.gauss(0, 1)]) for _ in range(int(np.prod(shape)))]
                           ).astype(dtype).reshape(shape)
                  for shape, dtype in kinds] for _ in range(shards)]
    before = [[None if g is None else g.tobytes() for g in row] for row in gradients]
    leaves, order = leaves_of(kinds), data.draw(st.permutations(range(len(kinds))))
    with np.errstate(all="ignore"):
        of_one_process(leaves, gradients, shards)
    bucket_bytes = data.draw(st.sampled_from([1, 30, 200, 10**6]))
    for entries in of_ranks(leaves, gradients, shards, size, bucket_bytes, random.randrange(99), order):
        found = {id(leaf): gradient for gradient, _, leaf in entries}
        assert len(found) == len(entries) == sum(leaf.grad is not None for leaf in leaves)
        assert all(same_bits(found[id(leaf)], leaf.grad.data) for leaf in leaves if leaf.grad is not None)
    assert before == [[None if g is None else g.tobytes() for g in row] for row in gradients]


def test_gradients_do_not_share_memory_that_is_written():
    """They are views into a bucket: what is added to one must change no other, nor what another rank has."""
    leaves = leaves_of([((3,), "float32"), ((2, 2), "float32")])
    gradients = [[np.ones(3, np.float32), np.ones((2, 2), np.float32)] for _ in range(2)]
    for entries in of_ranks(leaves, gradients, 2, 2, 10**6, 0, [0, 1]):
        for leaf in leaves:
            leaf.grad = None
        arrive(entries)
        leaves[0].grad.data[:] = 9
        assert leaves[1].grad.data.tolist() == [[2, 2], [2, 2]]
        leaves[1].grad.data[:] = 7
        assert leaves[0].grad.data.tolist() == [9, 9, 9]


def test_a_loss_of_something_else_is_an_error():
    leaf, other = leaves_of([((3,), "float32")] * 2)
    exchange = Exchange(Carrier(ThreadRank(0, 1, {}), 0), Layout([leaf]), 1)
    with pytest.raises(ValueError, match=r"a tensor of shape \(3,\) that is no parameter"):
        exchange.put(other, {(0, 1): np.ones(3, np.float32)})


def test_small_leaves_of_one_kind_share_a_bucket_that_comes_where_its_last_leaf_does():
    kinds = [("float32", "cpu", 9), ("float64", "cpu", 1), ("float32", "cpu", 13), ("float32", "cuda:0", 1),
             ("float32", "cpu", 9), ("float32", "cpu", 9), ("float32", "cpu", 9), ("float32", "cpu", 9),
             ("float32", "cpu", 2), ("float64", "cpu", 2)]
    leaves = [SimpleNamespace(number=number, dtype=np.dtype(dtype), device=device, data=np.zeros(size, dtype))
              for number, (dtype, device, size) in enumerate(kinds)]
    layout = Layout(leaves, bucket_bytes=160)
    assert [[leaf.number for leaf in bucket] for bucket in layout.buckets] == [[2], [0, 4, 5, 6, 7], [1, 9], [3], [8]]
    assert all(layout.buckets[bucket][place] is leaf for leaf in leaves
               for bucket, place in [layout.places[id(leaf)]])
