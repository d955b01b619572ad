"""Batches: every example once, never over the limit, like lengths together, a function of (seed, epoch)."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.batches import batches_by_length, collate, encode_pairs
from transformer.data.tokenizer import WordTokenizer
from transformer.data.vocabulary import EOS, UNK

tokens = st.integers(4, 50)
sources = st.lists(tokens, max_size=12).map(lambda ids: [*ids, EOS])
examples_lists = st.lists(st.tuples(sources, st.lists(tokens, max_size=12)), max_size=60)
plans = st.fixed_dictionaries(
    {"batch_tokens": st.integers(1, 80), "seed": st.integers(0, 9), "epoch": st.integers(0, 9)})


def made_examples(count, longest=16):
    lengths = np.random.default_rng(0).integers(1, longest + 1, (count, 2))
    return [([5] * (source - 1) + [EOS], [6] * target) for source, target in lengths.tolist()]


def plan(examples, batch_tokens=100, seed=0, epoch=0):
    return [batch.tolist() for batch in batches_by_length(examples, batch_tokens, seed, epoch)]


@given(examples_lists, plans)
def test_every_example_is_in_one_batch_and_neither_side_exceeds_the_limit(examples, options):
    batches = plan(examples, **options)
    assert sorted(index for batch in batches for index in batch) == list(range(len(examples)))
    for batch in batches:
        padded = collate(examples, batch)
        size = max(padded.source.size, padded.target[:, 1:].size)
        assert size <= options["batch_tokens"] or len(batch) == 1
    assert plan(examples, **options) == batches


def test_another_seed_or_epoch_shuffles_batches_and_what_is_in_them():
    examples = made_examples(3000)
    plans = [plan(examples, seed=seed, epoch=epoch) for seed, epoch in ((0, 0), (1, 0), (0, 1))]
    assert len({frozenset(map(frozenset, batches)) for batches in plans}) == 3
    longest = [max(len(examples[i][1]) for i in batch) for batch in plans[0]]
    assert abs(np.corrcoef(np.arange(len(longest)), longest)[0, 1]) < 0.2, "the order does not follow length"


def test_like_lengths_are_together_and_batches_are_full():
    examples, real, room = made_examples(5000), 0, 0
    for batch in plan(examples, batch_tokens=200):
        targets = [len(examples[i][1]) for i in batch]
        assert max(targets) - min(targets) <= 2
        padded = collate(examples, batch)
        real += np.count_nonzero(padded.source) + padded.num_target_tokens
        room += padded.source.size + padded.target[:, 1:].size
    assert real / room > 0.9
    assert sorted(map(len, plan([([5, EOS], [6])] * 100, batch_tokens=32))) == [4, *[16] * 6]


def test_encode_by_hand():
    source, target = WordTokenizer.train(["a b"]), WordTokenizer.train(["x y"])
    assert encode_pairs([("b a", "y"), ("zzz", "")], source, target) == [([5, 4, EOS], [5]), ([UNK, EOS], [])]
