"""Prefixes, least lengths and repetitions, held to a plain function of the logits and of the tokens so far."""

from functools import partial

import numpy as np
import pytest

import minigrad
from minigrad import functional as F
from minigrad import nn

from tests.transformer.decoding_models import BOS, EOS, LETTERS, peaked_model, prefer, random_sources, trimmed
from tests.transformer.test_beam import plain_beam
from tests.transformer.test_generate import END, PROMPTS, peaked, whole
from transformer.decode import beam_search, generate, greedy, stream
from transformer.decode.controls import DecodingError

OPTIONS = [
    {"min_length": 3}, {"min_length": 9}, {"repetition_penalty": 1.8}, {"repetition_penalty": 0.6},
    {"no_repeat_ngram_size": 1}, {"no_repeat_ngram_size": 2}, {"no_repeat_ngram_size": 3},
    {"prefix": [4, 3]}, {"prefix": [[4], [], [3, 3, 3], [5, 4], [3]]},
    {"prefix": [3, 3, 3], "min_length": 5, "repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
]
every_option = pytest.mark.parametrize("options", OPTIONS, ids=str)


def controlled(logits, ids, added, end, prefix=(), min_length=0, repetition_penalty=1.0, no_repeat_ngram_size=0):
    """The log-probabilities after the tokens `ids`, token by token, of logits (V,); as Hugging Face's processors do."""
    logits = [float(x) for x in logits]
    for token in set(ids):
        logits[token] = logits[token] / repetition_penalty if logits[token] > 0 else logits[token] * repetition_penalty
    row = F.log_softmax(np.array(logits))
    n = no_repeat_ngram_size
    for token in range(len(row)):
        seen = {tuple(ids[i:i + n]) for i in range(len(ids) - n + 1)}
        repeats = n > 0 and (*ids, token)[-n:] in seen
        too_early = token == end and added < min_length
        if (added < len(prefix) and token != prefix[added]) or (added >= len(prefix) and (repeats or too_early)):
            row[token] = -np.inf
    return row


def following(model, source, prefixes, **options):
    with minigrad.no_grad(), nn.evaluating():
        logits = model(np.repeat(trimmed(source), len(prefixes), axis=0), [[BOS, *ids] for ids in prefixes])
    return [controlled(row, ids, len(ids), EOS, **options)
            for row, ids in zip(logits.numpy()[:, -1], prefixes, strict=True)]


@every_option
@pytest.mark.parametrize("size", [1, 3])
def test_translations_are_those_of_a_plain_beam(options, size):
    """In a batch, whose sentences end at different steps; greedy decoding is a beam of one."""
    for seed in (1, 4):
        model, sources = prefer(peaked_model(seed, sharpness=3.0), eos=-1.0), random_sources(seed)
        found = beam_search(model, sources, size, size, 9, **options)
        for row, (hypotheses, source) in enumerate(zip(found, sources, strict=True)):
            own = dict(options)
            if np.ndim(own.get("prefix", [0])[0]) or own.get("prefix", [0])[0] == []:
                own["prefix"] = own["prefix"][row]
            expected = plain_beam(model, source, size, size, 9, 0.6, partial(following, **own))
            assert [(tuple(h.ids), h.finished) for h in hypotheses] == [(ids, ended) for ids, _, ended in expected]
            np.testing.assert_allclose([h.score for h in hypotheses], [score for _, score, _ in expected], rtol=1e-9)
            [alone] = beam_search(model, trimmed(source), size, size, 9, **own)
            assert [h.ids for h in alone] == [h.ids for h in hypotheses]
        if size == 1:
            assert [h.ids for h in greedy(model, sources, 9, **options)] == [h.ids for [h] in found]


def test_a_wide_beam_finds_the_best_of_all_that_is_allowed():
    """Of the translations of at most four letters in which no two follow each other twice."""
    options = {"no_repeat_ngram_size": 2, "min_length": 2, "prefix": [3]}
    model, source = prefer(peaked_model(0, sharpness=3.0), eos=-1.0), random_sources(0, (4,))[0]
    everything, texts = [], [((), 0.0)]
    for _ in range(5):
        rows = [following(model, source, [list(ids)], **options)[0] for ids, _ in texts]
        everything += [(total + row[EOS], ids) for (ids, total), row in zip(texts, rows, strict=True)]
        texts = [((*ids, letter), total + row[letter]) for (ids, total), row in zip(texts, rows, strict=True)
                 for letter in LETTERS]
    expected = sorted(everything, reverse=True)[:10]
    [found] = beam_search(model, source[None], 400, 10, 5, alpha=0.0, **options)
    assert [tuple(h.ids) for h in found] == [ids for _, ids in expected]
    np.testing.assert_allclose([h.score for h in found], [total for total, _ in expected], rtol=1e-9)


@pytest.mark.parametrize("options", [
    each for each in OPTIONS if "prefix" not in each and each != {"no_repeat_ngram_size": 1}], ids=str)
def test_continuations_count_the_prompt_as_text(options, device):
    model = peaked(sharpness=2.0)
    expected = []
    for prompt in PROMPTS:
        ids, total = list(prompt), 0.0
        for added in range(10):
            with minigrad.no_grad(), nn.evaluating():
                row = controlled(model([ids]).numpy()[0, -1], ids, added, END, **options)
            total += row.max()
            ids.append(int(row.argmax()))
            if ids[-1] == END:
                break
        expected.append((tuple(ids[len(prompt):]), pytest.approx(total)))
    model.to(device)
    for choice in ({}, {"top_k": 1}):
        found = generate(model, PROMPTS, 10, end_id=END, **choice, **options)
        assert [(whole(h), h.log_probability) for h in found] == expected
    assert [[*stream(model, prompt, 10, end_id=END, **options)] for prompt in PROMPTS] == [h.ids for h in found]
    [[*ids]] = [h.ids for h in generate(model, PROMPTS[:1], 10, end_id=END, beam_size=3, **options)]
    assert len(ids) >= options.get("min_length", 0)


@pytest.mark.parametrize("decode", [greedy, partial(beam_search, beam_size=3)], ids=["greedy", "beam"])
def test_where_they_are_off_nothing_changes(decode):
    """Not a bit; and threads divide the prefixes with the sentences."""
    model, sources = peaked_model(1, dtype=np.float32), random_sources(1, (*range(1, 10), *range(9, 0, -1)))
    off = {"prefix": [], "min_length": 0, "repetition_penalty": 1, "no_repeat_ngram_size": 0}
    assert decode(model, sources, **off) == decode(model, sources)
    assert decode(model, sources, prefix=[[]] * len(sources)) == decode(model, sources)
    prefixes = [[letter] * (row % 3) for row, letter in enumerate(np.resize(LETTERS, len(sources)))]
    expected = decode(model.to(dtype=np.float64), sources, prefix=prefixes)
    with minigrad.parallel.threads(2):
        found = decode(model, sources, prefix=prefixes)
    best = [[h[0] if isinstance(h, list) else h for h in way] for way in (expected, found)]
    assert [h.ids for h in best[0]] == [h.ids for h in best[1]]
    assert all(h.ids[:len(prefix)] == prefix for h, prefix in zip(best[0], prefixes, strict=True) if prefix)


def test_a_translation_may_be_as_long_as_its_prefix_and_least_length_ask():
    model, source = prefer(peaked_model(0), eos=30.0), random_sources(0, (2,))  # by default 16 tokens
    for options, length in (({"min_length": 30}, 30), ({"prefix": [3] * 25}, 25)):
        [found] = greedy(model, source, **options)
        assert len(found.ids) == length


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"prefix": [[3], [4], [5]]}, ValueError, "a prefix for each of the 2 sentences expected, got 3"),
    ({"prefix": [3, 6]}, IndexError, "prefix: id 6 is out of range"),
    ({"prefix": [0.5]}, TypeError, "prefix must be integers"),
    ({"prefix": np.ma.masked_equal([3, 4], 4)}, TypeError, "masked"),
    *(({"prefix": [3, token]}, ValueError, "prefix 0 has padding, or the beginning or the end") for token in (0, 1, 2)),
    ({"prefix": [3] * 8, "max_length": 7}, DecodingError, "8 tokens is more than the greatest length, 7"),
    ({"min_length": 41}, DecodingError, "41 tokens is more than the greatest length, 40"),
    ({"min_length": -1}, ValueError, "min_length must be at least 0"),
    ({"min_length": 2.5}, TypeError, "min_length must be an integer"),
    ({"repetition_penalty": 0}, ValueError, "repetition_penalty must be at least 0.001, got 0"),
    ({"repetition_penalty": np.inf}, ValueError, "at most 1000"),
    ({"no_repeat_ngram_size": -1}, ValueError, "no_repeat_ngram_size must be at least 0"),
    ({"min_length": 4, "no_repeat_ngram_size": 1}, DecodingError, "no token may follow; lower min_length"),
    ({"min_lenght": 4}, TypeError, "no option min_lenght; .* min_length, rep"),
], ids=str)
def test_mistakes(options, error, message):
    for decode in (greedy, partial(beam_search, beam_size=2)):
        with pytest.raises(error, match=message):
            decode(peaked_model(0, dtype=np.float32), random_sources(0, (5, 2)), **options)


def test_options_that_leave_a_prompt_no_token_are_an_error():
    for options in ({"min_length": 6}, {"no_repeat_ngram_size": 1, "never": range(5, 11), "beam_size": 2},
                    {"never": range(11)}, {"never": range(11), "top_k": 2}):
        with pytest.raises(DecodingError):
            generate(peaked().to(dtype=np.float32), [[*range(11)]], 5, **options)
