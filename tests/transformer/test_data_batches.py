"""Batches: every example once, never over the limit, like lengths together, a function of (seed, epoch)."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.batches import batches_by_length, collate, encode_pairs
from transformer.data.tokenizer import WordTokenizer
from transformer.data.vocabulary import BOS, EOS, PAD, UNK

tokens = st.integers(4, 50)
examples_lists = st.lists(
    st.tuples(
        st.lists(tokens, max_size=12).map(lambda ids: [*ids, EOS]),
        st.lists(tokens, max_size=12),
    ),
    max_size=60,
)
plans = {"batch_tokens": st.integers(1, 80), "seed": st.integers(0, 9), "epoch": st.integers(0, 9)}


def made_examples(count, longest=16):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, longest + 1, (count, 2))
    return [([5] * (source - 1) + [EOS], [6] * target) for source, target in lengths.tolist()]


def plan(examples, batch_tokens=100, seed=0, epoch=0):
    return [batch.tolist() for batch in batches_by_length(examples, batch_tokens, seed, epoch)]


@given(examples_lists, st.fixed_dictionaries(plans))
def test_every_example_is_in_exactly_one_batch(examples, options):
    batches = plan(examples, **options)
    assert all(batches)
    assert sorted(index for batch in batches for index in batch) == list(range(len(examples)))


@given(examples_lists, st.fixed_dictionaries(plans))
def test_neither_side_of_a_batch_exceeds_the_limit_unless_it_is_one_sentence(examples, options):
    for batch in plan(examples, **options):
        padded = collate(examples, batch)
        size = max(padded.source.size, padded.target[:, 1:].size)
        assert size <= options["batch_tokens"] or len(batch) == 1


@given(examples_lists, st.fixed_dictionaries(plans))
def test_the_plan_is_a_function_of_seed_and_epoch(examples, options):
    np.random.default_rng(options["seed"]).random(7)  # another generator's state is of no account
    assert plan(examples, **options) == plan(examples, **options)


def test_another_seed_or_epoch_shuffles_batches_and_what_is_in_them():
    examples = made_examples(3000)
    first = plan(examples)
    for other in (plan(examples, seed=1), plan(examples, epoch=1)):
        assert other != first
        assert {frozenset(batch) for batch in other} != {frozenset(batch) for batch in first}
    # (seed, epoch) is a pair: seed 0, epoch 1 is not seed 1, epoch 0.
    assert plan(examples, seed=1, epoch=0) != plan(examples, seed=0, epoch=1)


def test_the_order_of_batches_does_not_follow_length():
    examples = made_examples(3000)
    steps = [max(len(examples[i][1]) for i in batch) for batch in plan(examples)]
    assert abs(np.corrcoef(np.arange(len(steps)), steps)[0, 1]) < 0.2


def test_like_lengths_are_together_and_batches_are_full():
    examples = made_examples(5000)
    for batch in plan(examples, batch_tokens=200):
        targets = [len(examples[i][1]) for i in batch]
        assert max(targets) - min(targets) <= 2
    uniform = [([5, EOS], [6])] * 100
    assert sorted(map(len, plan(uniform, batch_tokens=32))) == [4, 16, 16, 16, 16, 16, 16]


def test_a_sentence_over_the_limit_is_a_batch_of_its_own():
    examples = [([5, EOS], [6]), ([5] * 10 + [EOS], [6] * 40), ([5, EOS], [6, 6])]
    assert sorted(map(sorted, plan(examples, batch_tokens=10))) == [[0, 2], [1]]


def test_no_examples_make_no_batches():
    assert plan([]) == []


def test_a_plan_for_50_000_pairs_takes_less_than_half_a_second():
    examples = made_examples(50_000)
    seconds = []
    for epoch in range(3):
        start = time.perf_counter()
        batches_by_length(examples, 4096, 0, epoch)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


@pytest.mark.parametrize("options", [{"batch_tokens": 0}, {"seed": -1}, {"epoch": -1}])
def test_mistakes_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        plan(made_examples(3), **options)


def test_encode_pairs_by_hand():
    source, target = WordTokenizer.train(["a b"]), WordTokenizer.train(["x y"])
    examples = encode_pairs([("b a", "y"), ("zzz", "")], source, target)
    assert examples == [([5, 4, EOS], [5]), ([UNK, EOS], [])]


def test_collate_by_hand():
    examples = [([9, EOS], [7, 8, 9]), ([4, 5, 6, EOS], [7]), ([4, EOS], [])]
    batch = collate(examples, [1, 0])
    assert batch.source.tolist() == [[4, 5, 6, EOS], [9, EOS, PAD, PAD]]
    assert batch.target.tolist() == [[BOS, 7, EOS, PAD, PAD], [BOS, 7, 8, 9, EOS]]
    assert batch.indices.tolist() == [1, 0]
    assert {a.dtype for a in (batch.source, batch.target, batch.indices)} == {np.dtype(np.int64)}
    assert batch.num_target_tokens == 2 + 4  # the end of a sentence is predicted too
    assert collate(examples, np.array([2])).num_target_tokens == 1


def test_collate_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="at least one example"):
        collate(made_examples(3), [])
