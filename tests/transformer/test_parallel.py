"""A batch divided over threads: the gradients of the undivided one, the same bits every time, and nothing by halves."""

import itertools
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import minigrad
from minigrad import parallel

from tests.transformer.tiny import EOS, PAD, VOCABULARY, assert_same, gradients, tiny_model
from transformer.training.parallel_gradients import ParallelGradients, split


@pytest.fixture(autouse=True)
def tiny_models_are_divided(monkeypatch):
    monkeypatch.setattr("transformer.training.threads.SMALL", 0)
    monkeypatch.setattr("transformer.training.threads.SHARD_TOKENS", 1)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert [thread for thread in threading.enumerate() if thread.name.startswith("minigrad")] == []


def batch(rows=7, longest=9):
    """Rows of unequal lengths on both sides, in no order, with padding columns that all rows but one have."""
    rng = np.random.default_rng(3)
    source, labels = np.full((2, rows, longest), PAD)
    for row in range(rows):
        for ids in (source[row], labels[row]):
            length = longest if row == 2 else int(rng.integers(2, longest - 2))
            ids[:length] = rng.integers(EOS + 1, VOCABULARY, length)
            ids[length - 1] = EOS
    return source, labels


SOURCE, LABELS = batch()
TOKENS = np.count_nonzero(LABELS)


def computed(model, threads, calls=1, source=SOURCE, labels=LABELS):
    """The losses of `calls` batches, and the sum of their gradients by name; dropout as in step 5 of seed 6."""
    model.zero_grad()
    with minigrad.random.fork(6), ParallelGradients(model, threads) as compute:
        minigrad.random.set_step(5)
        losses = [float(compute(source, labels, 0.1, TOKENS)) for _ in range(calls)]
    return losses, gradients(model)


# ----------------------------------------------------------------- right


@pytest.mark.parametrize(("threads", "rows", "changes"), [
    (3, 7, {"share_embeddings": True, "tie_output": True}), (20, 7, {}), (2, 0, {}), (2, 1, {}),
    (7, 7, {"norm": "post", "positions": "learned"})], ids=str)
def test_the_gradients_of_the_undivided_batch(threads, rows, changes):
    """Of few sentences, too, and with padding that does not stand at the end."""
    model, batch = tiny_model(**changes), {"source": np.roll(SOURCE, 3, axis=1)[:rows], "labels": LABELS[:rows]}
    (loss,), expected = computed(model, 1, **batch)
    (divided,), found = computed(model, threads, **batch)
    assert divided == pytest.approx(loss, rel=1e-13)
    assert (loss == 0) == (rows == 0)
    assert_same(found, expected, tolerance=1e-12)


def test_masks_are_those_of_the_shards_keys():
    """One shard after another, by hand, in an undivided pass each: dropout's masks are the same, to the bit."""
    model = tiny_model(dropout=0.3)
    losses, found = computed(model, 3, calls=2)
    model.zero_grad()
    expected = []
    with minigrad.random.fork(6):
        minigrad.random.set_step(5)
        for _ in range(2):
            seeds = minigrad.random.next_generator().integers(2**64, size=3, dtype=np.uint64).tolist()
            for shard, seed in zip(split(SOURCE, LABELS, PAD, 3), seeds, strict=True):
                with minigrad.random.fork(seed):
                    loss = model.loss(*shard, 0.1, reduction="sum")
                    (loss / TOKENS).backward()
                    expected.append(float(loss))
    assert losses == [sum(expected[:3]), sum(expected[3:])]
    assert losses[0] != losses[1], "each batch of an update has masks of its own"
    assert_same(found, gradients(model), tolerance=1e-13)


# ----------------------------------------------------------------- the shards


def strip(ids):
    return tuple(ids[ids != PAD].tolist())


@pytest.mark.parametrize(("rows", "longest", "number"), [(60, 12, 5), (3, 9, 4)])
def test_shards_have_rows_of_like_length_and_about_as_many_tokens(rows, longest, number):
    """Each row is in one of them, and each of them has a row."""
    source, labels = batch(rows, longest)
    shards = split(source, labels, PAD, number)
    found = [[*zip(map(strip, shard.source), map(strip, shard.labels), strict=True)] for shard in shards]
    assert sorted(itertools.chain(*found)) == sorted(zip(map(strip, source), map(strip, labels), strict=True))
    assert len(shards) == min(rows, number)
    assert all((ids[:, -1] != PAD).any() for shard in shards for ids in shard), "no column of padding alone is left"
    tokens = [[len(s) + len(t) for s, t in shard] for shard in found]
    assert all(max(shorter) <= min(longer) for shorter, longer in itertools.pairwise(tokens))
    assert max(map(sum, tokens)) - min(map(sum, tokens)) <= 2 * longest, "of one row at most"


# ----------------------------------------------------------------- nothing by halves


class Trouble(Exception):
    pass


@pytest.mark.parametrize(("number", "error"), [(0, Trouble("no")), (2, KeyboardInterrupt())], ids=str)
def test_an_exception_in_a_shard_changes_no_gradient(number, error, monkeypatch):
    model = tiny_model()
    _, before = computed(model, 3)
    calls, forward = itertools.count(), type(model.encoder).forward

    def failing(self, *args):
        if next(calls) == number:
            time.sleep(0.03)  # the others go on meanwhile
            raise error
        return forward(self, *args)

    with ParallelGradients(model, 3) as compute:
        with monkeypatch.context() as patch:
            patch.setattr(type(model.encoder), "forward", failing)
            with pytest.raises(type(error)):
                compute(SOURCE, LABELS, 0.1, TOKENS)
        assert_same(gradients(model), before, tolerance=0)
        compute(SOURCE, LABELS, 0.1, TOKENS)
    assert_same(gradients(model), {name: 2 * value for name, value in before.items()}, tolerance=1e-13)


def test_a_failing_hook_changes_no_gradient():
    model = tiny_model()
    _, before = computed(model, 2)

    def hook(gradient):
        raise Trouble

    last = next(model.parameters())  # whose gradient comes last
    with last.register_hook(hook), ParallelGradients(model, 2) as compute, pytest.raises(Trouble):
        compute(SOURCE, LABELS, 0.1, TOKENS)
    assert_same(gradients(model), before, tolerance=0)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_block_keeps_products_to_one_thread_and_leaves_everything_as_before(threads):
    def state():
        return {pool["num_threads"] for pool in threadpool_info()}, parallel.thread_count()

    compute = ParallelGradients(tiny_model(), threads)
    with threadpool_limits(2):
        for _ in range(2):
            with compute:
                assert state() == ({2} if threads == 1 else {1}, threads)
            assert state() == ({2}, 1)


def test_wrong_arguments():
    for threads, error in ((0, ValueError), (2.5, TypeError)):
        with pytest.raises(error, match=rf"threads .*{threads}"):
            ParallelGradients(tiny_model(), threads)


def test_a_model_on_a_gpu_has_one_thread(stand_in):
    model = tiny_model(np.float32, device="cuda")
    with ParallelGradients(model, 2) as compute:
        assert compute.threads == 1
        loss = compute(SOURCE, LABELS, 0.0, TOKENS)
    assert type(loss) is not np.ndarray
    assert all(parameter.grad.device == "cuda:0" for parameter in model.parameters())
