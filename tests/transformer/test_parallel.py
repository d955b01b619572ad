"""A batch divided over threads: the gradients of the undivided one, and the same bits every time."""

import itertools
import threading
import time

import numpy as np
import pytest

import minigrad
from minigrad import functional as F

from tests.transformer.shards import LABELS, SOURCE, TOKENS, batch, computed
from tests.transformer.tiny import PAD, assert_same, gradients, tiny_model
from transformer.training import packed_loss
from transformer.training.parallel_gradients import split


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert [thread for thread in threading.enumerate() if thread.name.startswith("minigrad")] == []


# ----------------------------------------------------------------- right


@pytest.mark.parametrize(("threads", "changes"), [(2, {}), (3, {"share_embeddings": True, "tie_output": True}),
                                                  (7, {"norm": "post", "positions": "learned"}), (20, {})], ids=str)
def test_the_gradients_of_the_undivided_batch(threads, changes):
    model = tiny_model(**changes)
    (loss,), expected = computed(model, 1)
    (divided,), found = computed(model, threads)
    assert divided == pytest.approx(loss, rel=1e-13)
    assert_same(found, expected, tolerance=1e-12)


def test_one_thread_is_an_ordinary_backward_to_the_bit():
    model = tiny_model(np.float32, dropout=0.3)
    (loss,), found = computed(model, 1)
    model.zero_grad()
    with minigrad.random.fork(6):
        minigrad.random.set_step(5)
        expected = packed_loss(model, SOURCE, LABELS, 0.1, reduction="sum")
        (expected / TOKENS).backward()
    assert loss == float(expected)
    assert_same(found, gradients(model), tolerance=0)


def test_gradients_that_are_there_are_added_to():
    model = tiny_model()
    _, once = computed(model, 3)
    _, twice = computed(model, 3, calls=2)
    assert_same(twice, {name: 2 * gradient for name, gradient in once.items()}, tolerance=1e-13)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_sentences_and_padding_that_does_not_stand_at_the_end(rows):
    model, source = tiny_model(), np.roll(SOURCE, 3, axis=1)
    (loss,), expected = computed(model, 1, source=source[:rows], labels=LABELS[:rows])
    (divided,), found = computed(model, 2, source=source[:rows], labels=LABELS[:rows])
    assert divided == pytest.approx(loss, rel=1e-13)
    assert (loss == 0) == (rows == 0)
    assert_same(found, expected, tolerance=1e-12)


def test_masks_are_those_of_the_shards_keys():
    """One shard after another, by hand, in an undivided pass each: dropout's masks are the same, to the bit."""
    model = tiny_model(dropout=0.3)
    losses, found = computed(model, 3, calls=2)
    model.zero_grad()
    expected, drawn = [], set()
    with minigrad.random.fork(6):
        minigrad.random.set_step(5)
        for _ in range(2):
            shards = split(SOURCE, LABELS, PAD, 3)
            seeds = minigrad.random.next_generator().integers(2**64, size=3, dtype=np.uint64).tolist()
            drawn.update(seeds)
            total = 0.0
            for shard, seed in zip(shards, seeds, strict=True):
                with minigrad.random.fork(seed):
                    loss = packed_loss(model, *shard, 0.1, reduction="sum")
                    (loss / TOKENS).backward()
                    total += float(loss)
            expected.append(total)
    assert losses == expected
    assert losses[0] != losses[1], "each batch of an update has masks of its own"
    assert len(drawn) == 6
    assert_same(found, gradients(model), tolerance=1e-13)


def test_timing_does_not_show(monkeypatch):
    """float32 and dropout: shards that are held up at random give the same bits."""
    model = tiny_model(np.float32, dropout=0.3, num_encoder_layers=2)
    expected = computed(model, 4)
    rng, normalise, delays = np.random.default_rng(0), F.layer_norm, []

    def held_up(*arguments):
        delays.append(float(rng.uniform(0, 0.004)))
        time.sleep(delays[-1])
        return normalise(*arguments)

    monkeypatch.setattr(F, "layer_norm", held_up)
    for _ in range(3):
        losses, found = computed(model, 4)
        assert losses == expected[0]
        assert_same(found, expected[1], tolerance=0)
    assert len(delays) > 20


# ----------------------------------------------------------------- the shards


def test_every_row_is_in_one_shard_with_rows_of_like_length():
    shards = split(SOURCE, LABELS, PAD, 3)
    assert len(shards) == 3
    found = [(strip(source), strip(labels)) for shard in shards for source, labels in zip(*shard, strict=True)]
    assert sorted(found) == sorted((strip(s), strip(t)) for s, t in zip(SOURCE, LABELS, strict=True))
    for shard in shards:
        assert all((ids[:, -1] != PAD).any() for ids in shard), "no column of padding alone is left"
    lengths = [[len(strip(s)) + len(strip(t)) for s, t in zip(*shard, strict=True)] for shard in shards]
    assert all(max(shorter) <= min(longer) for shorter, longer in itertools.pairwise(lengths))
    assert sum(shard.source.size + shard.labels.size for shard in shards) < 0.75 * (SOURCE.size + LABELS.size)


def strip(ids):
    return tuple(ids[ids != PAD].tolist())


def test_shards_have_about_as_many_real_tokens():
    source, labels = batch(rows=60, longest=12)
    tokens = [np.count_nonzero(shard.source) + np.count_nonzero(shard.labels)
              for shard in split(source, labels, PAD, 5)]
    assert max(tokens) - min(tokens) <= 24, "a row has 24 at most"


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_every_shard_has_a_row(rows):
    source, labels = batch(rows=9)
    source, labels = source[:rows], labels[:rows]
    source[0] = 5  # one row with most of the tokens
    source[1:, 2:] = labels[1:, 1:] = PAD
    shards = split(source, labels, PAD, 4)
    assert len(shards) == min(rows, 4)
    assert all(len(shard.source) for shard in shards)


def test_rows_of_padding_alone():
    ids = np.full((3, 4), PAD)
    shards = split(ids, ids, PAD, 2)
    assert [shard.labels.shape[1] for shard in shards] == [1, 1]
    assert sum(len(shard.labels) for shard in shards) == 3
