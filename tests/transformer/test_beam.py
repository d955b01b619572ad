"""Greedy decoding and beam search, with every option, against a plain beam and against exhaustive search."""

import numpy as np
import pytest

import minigrad

from tests.transformer.decoding_models import EOS, LETTERS, PAD, peaked_model, plain_beam, prefer, random_sources
from transformer.data.batches import trimmed
from transformer.decode import beam_search, greedy

OPTIONS = [
    {}, {"alpha": 0.0}, {"alpha": 1.0},
    {"min_length": 3}, {"min_length": 9}, {"repetition_penalty": 1.8}, {"repetition_penalty": 0.6},
    {"no_repeat_ngram_size": 1}, {"no_repeat_ngram_size": 2}, {"no_repeat_ngram_size": 3},
    {"prefix": [4, 3]}, {"prefix": [[4], [], [3, 3, 3], [5, 4], [3]]},
    {"prefix": [3, 3, 3], "min_length": 5, "repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
]


# --- Against others -------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "size", "num_best", "longest"), [
    *((options, *sizes, 9) for options in OPTIONS for sizes in ((1, 1), (3, 2), (5, 5))),
    *((options, 400, 150, 5) for options in (OPTIONS[0], OPTIONS[1], OPTIONS[2], {
        "alpha": 0.0, "no_repeat_ngram_size": 2, "min_length": 2, "prefix": [3]}))], ids=str)
def test_translations_are_those_of_a_plain_beam(options, size, num_best, longest):
    """Which goes on to the end, sentence by sentence. In a batch, whose sentences end at different steps, as alone.

    The widest has room for all 3⁵ texts: it is exhaustive.
    """
    for seed in (1, 4):
        model, sources = prefer(peaked_model(seed, sharpness=3.0), eos=-1.0), random_sources(seed)
        found = beam_search(model, sources, size, num_best, longest, **options)
        for row, (hypotheses, source) in enumerate(zip(found, sources, strict=True)):
            own = {"alpha": 0.6} | options
            if "prefix" in own and row < len(own["prefix"]) and np.ndim(own["prefix"][0]):
                own["prefix"] = own["prefix"][row]
            [alone] = beam_search(model, trimmed(source[None], PAD), size, num_best, longest, **own)
            assert [h.ids for h in alone] == [h.ids for h in hypotheses]
            expected = plain_beam(model, source, size, num_best, longest, **own)
            assert [(tuple(h.ids), h.finished) for h in hypotheses] == [(ids, ended) for ids, _, ended in expected]
            np.testing.assert_allclose([h.score for h in hypotheses], [score for _, score, _ in expected], rtol=1e-9)
        if size == 1 and "alpha" not in options:
            singles = greedy(model, sources, longest, **options)
            assert [h.ids for h in singles] == [h.ids for [h] in found]
            assert all(h.score == h.log_probability for h in singles)


# --- When a search ends ---------------------------------------------------------------------------


def spied(model):
    """The model, and a list that gets (sentences, hypotheses of each) for every step from now on."""
    steps, decode = [], model.decode
    model.decode = lambda ids, memory, memory_mask, cache: steps.append(
        (len(memory), len(ids) // len(memory))) or decode(ids, memory, memory_mask, cache)
    return model, steps


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_a_search_ends_when_nothing_can_win_any_more(alpha):
    """The first step all but ends the sentence: what is open then cannot catch up, however long it may become."""
    model, steps = spied(prefer(peaked_model(0), eos=60.0))
    beam_search(model, random_sources(0), 4, 1, 20, alpha)
    assert steps == [(5, 1)]


@pytest.mark.parametrize(("alpha", "wins"), [(2.0, [3] * 8), (0.6, []), (0.0, [])])
def test_a_long_translation_may_overtake_one_that_has_ended(alpha, wins):
    """The normalised score of what is open can rise with its length, since log-probabilities are negative.

    The first step gives its end 0.55 and a letter 0.22, which eight nearly certain steps follow. One step further on,
    the letter's score is still below that of the end; the search must not stop there.
    """
    rows = {1: [0.55, 0.22, 0.13, 0.1], 9: [0.997, 0.001, 0.001, 0.001]}
    model = peaked_model(0)
    decode = model.decode
    model.decode = lambda ids, cache, **beside: 0 * decode(ids, **beside, cache=cache) + np.log(
        [1e-300, 1e-300, *rows.get(ids.shape[1], [0.001, 0.997, 0.001, 0.001])])
    ((found,),) = beam_search(model, [[3, EOS]], 2, 1, max_length=20, alpha=alpha)
    assert (found.ids, found.finished) == (wins, True)


def test_finished_sentences_leave_the_batch():
    model, steps = spied(peaked_model(1))
    lengths = [len(h.ids) + h.finished for h in greedy(model, random_sources(1), max_length=15)]
    assert steps == [(sum(length > step for length in lengths), 1) for step in range(max(lengths))]
    assert len(set(steps)) > 1


def test_default_max_length_follows_the_sentence():
    """Twice its tokens, end-of-sentence included, plus ten: without its padding, and no more than the positions."""
    model, sources = prefer(peaked_model(0), eos=-100.0), random_sources(0, (5, 2, 17))
    for row, limit in zip(beam_search(model, sources, 3, 2), (22, 16, 40), strict=True):
        assert {(len(h.ids), h.finished) for h in row} == {(limit, False)}
    for options, length in (({"min_length": 30}, 30), ({"prefix": [3] * 25}, 25)):  # or as long as these ask
        [found] = greedy(prefer(peaked_model(0), eos=30.0), sources[1:2], **options)
        assert len(found.ids) == length


# --- What holds for every search ------------------------------------------------------------------


def test_of_equally_probable_tokens_the_smaller_id_comes_first():
    model = peaked_model(0)
    for parameter in model.projection.parameters():
        parameter.data[...] = 0.0
    assert [h.ids for h in greedy(prefer(model, eos=-1.0), random_sources(0), 4)] == [[3] * 4] * 5
    [found, *_] = beam_search(model, random_sources(0), 3, 3, 1)
    assert [h.ids for h in found] == [[3], [4], [5]]


def test_evaluation_mode_for_decoding_only():
    model, sources = peaked_model(0, dropout=0.5), random_sources(0)
    model.train()
    model.encoder.eval()  # someone froze a part
    modes = [module.training for module in model.modules()]
    found = beam_search(model, sources, 3)
    assert [module.training for module in model.modules()] == modes
    assert minigrad.is_grad_enabled()
    off = {"prefix": [[]] * 5, "min_length": 0, "repetition_penalty": 1, "no_repeat_ngram_size": 0}
    assert found == beam_search(model.eval(), sources, 3) == beam_search(model, sources, 3, **off), "they change no bit"
    with pytest.raises(ValueError, match="positions"):
        beam_search(model.train(), sources, 3, max_length=1000)
    assert all(module.training for module in model.modules())
    assert [beam_search(model, np.zeros((0, length), np.int64), 3) for length in (4, 0)] == [[], []]


def test_threads_divide_the_batch():
    """Sentences go with their prefixes, and come back in their order; no token is lost."""
    model = prefer(peaked_model(4), eos=-2.0)
    sources = np.insert(random_sources(4, (*range(1, 19), 3, 1, 9, 2)), 1, PAD, axis=1)
    prefixes = [[letter] * (row % 3) for row, letter in enumerate(np.resize(LETTERS, len(sources)))]
    one = greedy(model, sources, prefix=prefixes)
    with minigrad.parallel.threads(2):
        two = greedy(model, sources, prefix=prefixes)
    assert [h.ids for h in one] == [h.ids for h in two]
    np.testing.assert_allclose([h.score for h in one], [h.score for h in two], rtol=1e-12)
    assert all(h.ids[:len(prefix)] == prefix for h, prefix in zip(one, prefixes, strict=True))


# --- Mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("changes", "error", "message"), [
    ({"beam_size": 0}, ValueError, "beam_size .* 0"),
    ({"num_best": 3}, ValueError, "beam of 2 .* 3 best"),
    ({"alpha": -0.1}, ValueError, "alpha .* -0.1"),
    ({"max_length": 41}, ValueError, "max_length 41 .* 40 positions"),
    ({"prefix": [[3], [4], [5]]}, ValueError, "a prefix for each of the 2 sentences .* got 3"),
    ({"prefix": [3, 2]}, ValueError, "prefix 0 has padding, or the beginning or the end"),
    ({"prefix": [3, 6]}, IndexError, "prefix: id 6 is out of range"),
    ({"prefix": [3] * 8, "max_length": 7}, ValueError, "8 tokens is more than the greatest length, 7"),
    ({"min_length": 4, "no_repeat_ngram_size": 1}, ValueError, "no token may follow; lower min_length"),
    ({"min_length": -1}, ValueError, "min_length must be at least 0"),
    ({"no_repeat_ngram_size": None}, TypeError, "no_repeat_ngram_size must be an integer"),
    ({"repetition_penalty": 0}, ValueError, "at least 0.001, got 0"),
    ({"repetition_penalty": np.inf}, ValueError, "at most 1000"),
    ({"source": [[3, 9, EOS]]}, IndexError, "id 9"),
    ({"source": np.zeros((2, 0), np.int64)}, ValueError, "row 0 .* no tokens"),
    ({"source": [[3] * 40 + [EOS]]}, ValueError, "41 tokens .* 40 positions"),
], ids=str)
def test_mistakes(changes, error, message):
    with pytest.raises(error, match=message):
        beam_search(**{"model": peaked_model(0), "source": random_sources(0, (5, 2)), "beam_size": 2} | changes)
