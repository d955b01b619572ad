"""The exchange of gradients gives every rank the bits of one process, whatever comes when and where.

The ranks are threads here, and what they send is slow at random. test_training.py has the messages of a real MPI.
"""

import threading
import time
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad import Tensor
from minigrad.parallel import GradientSum

from transformer.distributed import buckets
from transformer.distributed.buckets import Exchange
from transformer.distributed.ranks import Alone

SPECIAL = [1.0, 1e-4, 3.0, -0.0, 0.0, 6e-8, 1e-45, 6e4, -6e4, np.inf, -np.inf, np.nan]


class ThreadRank(Alone):
    """A rank that is a thread; `world` is a dictionary that all of them share.

    An arrival is seen when all ranks have sent, and often later.
    """

    def __init__(self, rank, size, world, seed):
        self.rank, self.size, self.world, self.random, self.sent = rank, size, world, Random(seed), {}

    def post(self, kind, value):
        """What the ranks have sent in the next exchange of a kind, by rank."""
        self.sent[kind] = number = self.sent.get(kind, 0) + 1
        posted = self.world.setdefault((kind, number), {})
        posted[self.rank] = value
        return posted

    def exchange(self, value):
        told = self.post("words", value)
        self.wait_until(lambda: len(told) == self.size)
        return [told[rank] for rank in range(self.size)]

    def all_to_all(self, sent, sizes):
        posted, received = self.post("parts", sent.copy()), np.empty(sum(sizes), sent.dtype)

        def fetch():
            received[:] = np.concatenate([posted[rank][self.rank] for rank in range(self.size)])
        return [(posted, fetch)], received

    def all_gather(self, values):
        posted = self.post("totals", values[self.rank].copy())
        values[...] = np.nan

        def fetch():
            values[...] = [posted[rank] for rank in range(self.size)]
        return [(posted, fetch)]

    def arrived(self, requests):
        (posted, fetch), = requests
        if len(posted) < self.size or self.random.random() < 0.3:
            return False
        fetch()
        return True

    def wait_until(self, done):
        deadline = time.monotonic() + 20
        while not done():
            assert time.monotonic() < deadline, "the exchange does not end"
            time.sleep(0)


def leaves_of(shapes_and_dtypes):
    return [Tensor(np.zeros(shape, dtype), requires_grad=True, dtype=dtype) for shape, dtype in shapes_and_dtypes]


def of_ranks(leaves, gradients, shards, size, seed=0, order=None):
    """The entries that each rank gets."""
    world, results, errors = {}, [None] * size, []

    def work(rank):
        try:
            ranks, random = ThreadRank(rank, size, world, seed + rank), Random(f"{seed} {rank}")
            exchange = Exchange(ranks, [leaves[n] for n in order or range(len(leaves))], shards)
            total = GradientSum(shards, ranks.own(shards), exchange.put)
            coming = [(shard, number) for shard in range(*ranks.own(shards)) for number in range(len(leaves))
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
        total = GradientSum(shards)
        for shard, row in enumerate(gradients):
            for leaf, gradient in zip(leaves, row, strict=True):
                if gradient is not None:
                    total.receiver(shard)(leaf, gradient, False)
        total.deliver()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "BUCKET_BYTES", data.draw(st.sampled_from([1, 30, 200, 10**6])))
        of_each = of_ranks(leaves, gradients, shards, size, random.randrange(99), order)
    for entries in of_each:
        found = {id(leaf): gradient for gradient, _, leaf in entries}
        assert len(found) == len(entries) == sum(leaf.grad is not None for leaf in leaves)
        assert not any(np.shares_memory(*two) for two in combinations(found.values(), 2)), "one is changed alone"
        assert all(same_bits(found[id(leaf)], leaf.grad.data) for leaf in leaves if leaf.grad is not None)
    assert before == [[None if g is None else g.tobytes() for g in row] for row in gradients]


def test_a_loss_of_something_else_is_an_error():
    leaf, other = leaves_of([((3,), "float32")] * 2)
    exchange = Exchange(ThreadRank(0, 1, {}, 0), [leaf], 1)
    with pytest.raises(ValueError, match=r"a tensor of shape \(3,\) that is no parameter"):
        exchange.put(other, {(0, 1): np.ones(3, np.float32)})
