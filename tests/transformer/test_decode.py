"""Decoding: the cache, greedy search, and what holds for every way of decoding."""


import numpy as np
import pytest

import minigrad
import minigrad.parallel

from tests.transformer.decoding_models import (
    EOS,
    LETTERS,
    PAD,
    peaked_model,
    plain_greedy,
    prefer,
    random_sources,
    trimmed,
)
from transformer.data.batches import trimmed as trimmed_batch
from transformer.decode import beam, beam_search, greedy


def flat(result):
    """The hypotheses of any way of decoding, in one list."""
    return [h for row in result for h in (row if isinstance(row, list) else [row])]


WAYS = {
    "greedy": lambda model, source, **kwargs: [[h] for h in greedy(model, source, **kwargs)],
    "beam": lambda model, source, **kwargs: beam_search(model, source, 3, 2, **kwargs),
}
every_way = pytest.mark.parametrize("decode", WAYS.values(), ids=WAYS.keys())


# --- Greedy search --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_greedy_is_the_most_probable_token_at_each_step(seed):
    model, sources = prefer(peaked_model(seed), eos=-2.0), random_sources(seed)
    hypotheses = greedy(model, sources, max_length=12)
    assert len({len(found.ids) for found in hypotheses}) > 1
    for found, source in zip(hypotheses, sources, strict=True):
        expected = plain_greedy(model, source, 12)
        assert found.ids == expected.ids
        assert found.finished == expected.finished
        assert found.log_probability == found.score == pytest.approx(expected.log_probability, abs=1e-10)


# --- What holds for every way ---------------------------------------------------------------------


@pytest.mark.parametrize(("name", "dtype"), [("greedy", np.float64), ("beam", np.float32)])
def test_a_sentence_is_translated_alike_alone_and_in_a_batch(name, dtype):
    for seed in (1, 4):
        model, sources = peaked_model(seed, dtype=dtype), random_sources(seed, (5, 2, 9, 1, 3))
        together = WAYS[name](model, sources)
        wider = WAYS[name](model, np.pad(sources, ((0, 0), (0, 5)), constant_values=PAD))
        alone = [WAYS[name](model, trimmed(source))[0] for source in sources]
        for other in (wider, alone):
            assert [[h.ids for h in row] for row in together] == [[h.ids for h in row] for row in other]
            assert [[h.finished for h in row] for row in together] == [[h.finished for h in row] for row in other]
            # A score near 0 is a difference of larger logits: it has their rounding, not its own.
            rounding = 2e-6 if dtype is np.float32 else 1e-12
            np.testing.assert_allclose([h.score for h in flat(together)], [h.score for h in flat(other)],
                                       rtol=rounding, atol=rounding)


@every_way
def test_padding_and_begin_of_sentence_are_never_produced(decode):
    model = prefer(peaked_model(0), pad=30.0, bos=30.0)
    for hypothesis in flat(decode(model, random_sources(0), max_length=6)):
        assert set(hypothesis.ids) <= set(LETTERS)
        assert hypothesis.log_probability < -20  # P is the model's, which gives nearly everything to those two


@every_way
def test_default_max_length_follows_the_sentence(decode):
    """Twice its tokens, end-of-sentence included, plus ten: without its padding, and no more than the positions."""
    model, sources = prefer(peaked_model(0), eos=-100.0), random_sources(0, (5, 2, 17))
    for row, limit in zip(decode(model, sources), (22, 16, 40), strict=True):
        assert {len(h.ids) for h in row} == {limit}
        assert not any(h.finished for h in row)


@every_way
def test_empty_batch(decode):
    for length in (4, 0):
        assert decode(peaked_model(0), np.zeros((0, length), np.int64)) == []


@every_way
def test_evaluation_mode_for_decoding_only(decode):
    model, sources = peaked_model(0, dropout=0.5), random_sources(0)
    model.train()
    model.encoder.eval()  # someone froze a part
    modes = [module.training for module in model.modules()]
    before = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    minigrad.manual_seed(1)
    found = decode(model, sources)
    assert [module.training for module in model.modules()] == modes
    assert minigrad.is_grad_enabled()
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(np.array_equal(before[name], tensor.numpy()) for name, tensor in model.state_dict().items())
    minigrad.manual_seed(1)
    assert found == decode(model.eval(), sources)
    with pytest.raises(ValueError, match="positions"):
        decode(model.train(), sources, max_length=1000)
    assert all(module.training for module in model.modules())


# --- Threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_threads_divide_the_batch(name, monkeypatch):
    """Sentences of like length go together, and come back in their order."""
    model, sources = prefer(peaked_model(4), eos=-2.0), random_sources(4, (*range(1, 19), 3, 1, 9, 2))
    expected, widths = WAYS[name](model, sources), []
    monkeypatch.setattr(beam, "trimmed", lambda *given: widths.append((out := trimmed_batch(*given)).shape) or out)
    with minigrad.parallel.threads(2):
        found = WAYS[name](model, sources)
    assert sorted(widths) == [(6, 19), (16, 13)]
    assert [[h.ids for h in row] for row in found] == [[h.ids for h in row] for row in expected]
    np.testing.assert_allclose([h.score for h in flat(found)], [h.score for h in flat(expected)], rtol=1e-12)


def test_threads_keep_all_tokens_wherever_the_padding_is():
    model, sources = prefer(peaked_model(4), eos=-2.0), random_sources(4, (*range(1, 10), *range(9, 0, -1)))
    for row in sources:
        row[:] = np.insert(row[:-1], 1, PAD)
    expected = greedy(model, sources)
    with minigrad.parallel.threads(2):
        found = greedy(model, sources)
    assert [h.ids for h in found] == [h.ids for h in expected]
    np.testing.assert_allclose([h.log_probability for h in found], [h.log_probability for h in expected], rtol=1e-12)


# --- Mistakes -------------------------------------------------------------------------------------

SOURCE = [[3, 4, EOS]]


@pytest.mark.parametrize(("source", "max_length", "error", "message"), [
    (SOURCE, 41, ValueError, "max_length 41 .* 40 positions"),
    ([3, 4, EOS], None, ValueError, r"\(batch, length\)"),
    ([[3, 9, EOS]], None, IndexError, "id 9"),
    (np.zeros((2, 0), np.int64), None, ValueError, "row 0 .* no tokens"),
    ([[3] * 40 + [EOS]], None, ValueError, "41 tokens .* 40 positions"),
], ids=str)
def test_mistakes(source, max_length, error, message):
    model = peaked_model(0)
    for decode in WAYS.values():
        with pytest.raises(error, match=message):
            decode(model, source, max_length=max_length)
