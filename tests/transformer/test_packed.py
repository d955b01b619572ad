"""The loss without padding: the same value and gradients, dropout included, from less work."""

import numpy as np
import pytest

import minigrad
from minigrad.engine.watch import Watcher, watch
from minigrad.functional.linear import linear

from tests.transformer.tiny import PAD, VOCABULARY, assert_same, backward, tiny_model
from transformer.training import packed_loss
from transformer.training.packed import real_tokens

RNG = np.random.default_rng(12)


def sentences(*lengths):
    """Ids of sentences with these numbers of tokens, padded to the longest."""
    ids = RNG.integers(3, VOCABULARY, size=(len(lengths), max(lengths)))
    ids[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = PAD
    return ids


SOURCE, LABELS = sentences(5, 1, 3), sentences(2, 6, 1)


@pytest.mark.parametrize(("reduction", "options"), [
    ("mean", {}), ("sum", {"norm": "post"}), ("mean", {"positions": "learned"}),
    ("sum", {"share_embeddings": True, "tie_output": True}),
    ("mean", {"bias": False, "output_bias": True, "activation": "gelu"}),
    ("mean", {"activation": "silu"}),
], ids=str)
def test_loss_and_gradients_are_those_of_whole_batches(reduction, options):
    model = tiny_model(dropout=0.4, **options)
    arguments = SOURCE, LABELS, 0.1, reduction
    found = backward(model, lambda: packed_loss(model, *arguments))
    assert_same(found, backward(model, lambda: model.loss(*arguments)))
    with minigrad.random.fork(6):
        value = packed_loss(model, *arguments).item()
    with minigrad.random.fork(6):
        np.testing.assert_allclose(value, model.loss(*arguments).item(), rtol=1e-13)
    value = packed_loss(model.eval(), *arguments).item()
    np.testing.assert_allclose(value, model.loss(*arguments).item(), rtol=1e-13)


def test_the_rows_that_are_computed_are_the_real_ones():
    class Counter(Watcher):
        numbers = 0

        def after(self, what, given, made):
            self.numbers += made.size if what is linear else 0

    def count(function):
        with watch(counter := Counter()):
            function(tiny_model(), SOURCE, LABELS)
        return counter.numbers

    packed, whole = count(packed_loss), count(lambda model, *ids: model.loss(*ids))
    # features of what the linear maps give
    wide = {"encoder": 4 * 8 + 12 + 8, "decoder": 6 * 8 + 12 + 8, "memory": 2 * 8}
    real = 9 * wide["encoder"] + 9 * wide["decoder"] + 9 * wide["memory"]
    assert packed == real
    logits = 18 * VOCABULARY  # packed, they are part of the loss
    assert whole == 15 * wide["encoder"] + 18 * wide["decoder"] + 15 * wide["memory"] + logits


def test_padding_stays_where_nearly_all_tokens_are_real():
    assert real_tokens(sentences(10, 10, 9) != PAD) is None


@pytest.mark.parametrize(("source", "labels"), [
    (sentences(4, 4, 4), sentences(1, 5, 2)), (sentences(1, 7, 2), sentences(3, 3, 3)),
    (sentences(3, 3), sentences(2, 2)), (sentences(5, 2), [[PAD, PAD, 5, 6, 2], [PAD, PAD, 9, 2, PAD]]),
    (sentences(5, 2), [[5, PAD, 7, 2, PAD], [PAD, PAD, 6, 2, PAD]]), (sentences(5, 2), [[PAD] * 5, [3, 4, 5, 6, 2]]),
], ids=["the target is padded", "the source is padded", "nothing is padded", "a prompt without labels", "gaps",
        "a sentence without labels"])
def test_padding_and_missing_labels_anywhere(source, labels):
    """What a later label depends on is computed, label or not."""
    model, labels = tiny_model(dropout=0.3), np.array(labels)
    found = backward(model, lambda: packed_loss(model, source, labels))
    assert_same(found, backward(model, lambda: model.loss(source, labels)))
