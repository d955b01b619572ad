"""Epochs: small data as ever, large data window by window; every example once, resumable at any batch."""

import itertools
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.data.batches import batches_by_length
from transformer.data.epochs import Epochs


def lengths(count, longest=16):
    return np.random.default_rng(0).integers(1, longest + 1, (2, count)).astype(np.uint8)


def listed(batches):
    return [batch.tolist() for batch in batches]


@pytest.mark.parametrize("count", [1, 2, 300])
def test_data_of_one_window_has_the_batches_of_batches_by_length(count):
    source_lengths, steps = lengths(count)
    examples = [([5] * source, [6] * (step - 1)) for source, step in zip(source_lengths, steps, strict=True)]
    epochs = Epochs(source_lengths, steps, batch_tokens=60, seed=3, window=300)
    for epoch in range(3):
        assert listed(epochs.batches(epoch)) == listed(batches_by_length(examples, 60, 3, epoch))


@settings(deadline=None)
@given(count=st.integers(1, 200), window=st.integers(1, 50), batch_tokens=st.integers(1, 80), seed=st.integers(0, 9))
def test_every_example_is_in_one_batch_of_an_epoch_whatever_the_window(count, window, batch_tokens, seed):
    source_lengths, steps = lengths(count)
    epochs = Epochs(source_lengths, steps, batch_tokens, seed, window)
    orders = []
    for epoch in (0, 1):
        batches = epochs.batches(epoch)
        assert len(batches) == len(list(batches)) == len(epochs.batches(0))
        assert sorted(itertools.chain(*listed(batches))) == list(range(count))
        for batch in batches:
            assert len(batch) == 1 or len(batch) * max(source_lengths[batch].max(), steps[batch].max()) <= batch_tokens
        orders.append(listed(batches))
    assert count < 30 or orders[0] != orders[1]


def test_an_epoch_goes_on_at_any_batch():
    epochs = [Epochs(*lengths(500), batch_tokens=60, seed=1, window=64) for _ in range(2)]
    whole = listed(epochs[0].batches(2))
    for position in range(len(whole)):
        again = epochs[1].batches(2)
        assert listed(again[position:position + 3]) == whole[position:position + 3]
        assert again[position].tolist() == whole[position]
    assert epochs[1].batches(2)[-1].tolist() == whole[-1]
    with pytest.raises(IndexError):
        epochs[1].batches(2)[len(whole)]


def test_windows_mix_distant_examples_and_stay_the_same_in_every_epoch():
    """With windows of consecutive examples, a batch of a sorted corpus would be of one subject."""
    epochs = Epochs(*lengths(4000), batch_tokens=400, seed=1, window=400)
    windows = [{frozenset(itertools.chain(*listed(epochs.window(epoch, n)))) for n in range(10)} for epoch in (0, 1)]
    assert windows[0] == windows[1]
    assert all(max(members) - min(members) > 3000 for members in windows[0])
    assert epochs.order(0).tolist() != epochs.order(1).tolist()


def test_one_window_at_a_time_is_computed():
    """A training that goes on in the last window need not compute the others, nor any window twice."""
    epochs = Epochs(*lengths(500), batch_tokens=60, seed=1, window=64)
    batches = epochs.batches(0)
    with patch.object(epochs, "window", wraps=epochs.window) as window:
        list(batches[len(batches) - 3:])
        assert window.call_count == 1
        list(epochs.batches(0))
        assert window.call_count == 1 + 8
