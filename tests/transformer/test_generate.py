"""Continuing prompts with a decoder-only model, held to what follows from the logits of whole texts."""

from collections import Counter

import numpy as np
import pytest

import minigrad

from tests.transformer.decoding_models import EOS, LETTERS, plain_beam
from tests.transformer.models import language_model
from tests.transformer.test_beam import OPTIONS
from tests.transformer.test_sampling import fits
from transformer.decode import generate, stream
from transformer.finite import NotFinite

PROMPTS = [[5, 3, 9], [4], [8, 8, 1], [2, 7], [1, 2, 3, 4, 5]]
NEVER = tuple(token for token in range(11) if token not in (EOS, *LETTERS))


def peaked(sharpness=6.0, **options):
    """A model that is certain of itself, with dropout that evaluation leaves out."""
    model = language_model(**{"dropout": 0.3, "num_layers": 2, "tie_output": False} | options)
    model.projection.weight.data[...] *= sharpness
    return model


def whole(hypothesis, end=EOS):
    return (*hypothesis.ids, end) if hypothesis.finished else tuple(hypothesis.ids)


# --- Against others -------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "end"), [({}, -1), ({}, 6), *(
    (options, EOS) for options in OPTIONS if not {"prefix", "alpha"} & options.keys()
    and options != {"no_repeat_ngram_size": 1})], ids=str)
def test_the_most_probable_token_follows(options, end, device):
    """In batches of prompts of unequal lengths, each as it would be alone; a prompt counts as text."""
    model = peaked(sharpness=2.0)
    expected = [plain_beam(model, prompt, 1, 1, 12, 0.0, end, (), **options)[0] for prompt in PROMPTS]
    model.to(device)
    for choice in ({}, {"top_k": 1}):
        found = generate(model, PROMPTS, 12, end_id=None if end < 0 else end, **choice, **options)
        assert [(tuple(h.ids), pytest.approx(h.log_probability, rel=1e-12), h.finished) for h in found] == expected
        assert [h.score for h in found] == [h.log_probability for h in found]


@pytest.mark.parametrize("options", [{}, {"alpha": 0.0}, {"min_length": 3}, {"no_repeat_ngram_size": 3}], ids=str)
@pytest.mark.parametrize("size", [3, 400])
def test_a_beam_finds_what_a_plain_beam_finds(size, options):
    """In batches of prompts of unequal lengths; the wide one is exhaustive, of what ends within five tokens."""
    model = peaked(sharpness=3.0)
    found = generate(model, PROMPTS, 5, beam_size=size, end_id=EOS, never=NEVER, **options)
    assert [((tuple(h.ids), pytest.approx(h.score, rel=1e-10), h.finished)) for h in found] == [
        plain_beam(model, prompt, size, 1, 5, never=NEVER, **{"alpha": 0.6} | options)[0] for prompt in PROMPTS]


@pytest.mark.parametrize("options", [{}, {"beam_size": 3}, {"temperature": 1.0, "top_k": 5}], ids=str)
def test_each_prompt_is_continued_as_alone(options, device):
    """In batches that prompts leave at different times, each with a memory of its own; and as a stream."""
    model, prompts = peaked(sharpness=1.5, cross_attention=True).to(device).train(), [*PROMPTS[::2], *PROMPTS]
    memory = minigrad.Tensor(np.random.default_rng(3).normal(size=(8, 5, 8)) * 3, device=device)

    def found(rows):
        with minigrad.random.fork(2):
            return [whole(h) for h in generate(model, [prompts[row] for row in rows], 15, end_id=EOS,
                                               memory=memory[np.array(rows)], **options)]

    together = found(range(8))
    assert len({len(ids) for ids in together}) > 1
    if "temperature" in options:  # a seed repeats the draws, and those of the first rows do not depend on the others
        assert together[:3] == found(range(3))
    else:
        assert together == [ids for row in range(8) for ids in found([row])]
    if "beam_size" not in options:
        left = [token for token in together[0] if token != EOS]
        with minigrad.random.fork(2):
            for token in stream(model, prompts[0], 15, end_id=EOS, memory=memory[:1], **options):
                assert (token, minigrad.is_grad_enabled(), model.layers[0].training) == (left.pop(0), True, True)
        assert left == []


def test_threads_make_no_difference():
    model, prompts = peaked(), np.random.default_rng(0).integers(0, 11, (40, 3))
    with minigrad.random.fork(1):
        expected = generate(model, prompts, 5, temperature=1.0)
    with minigrad.random.fork(1), minigrad.parallel.threads(2):
        assert generate(model, prompts, 5, temperature=1.0) == expected


def test_draws_have_the_probabilities_of_the_model():
    """Every continuation of at most two tokens is drawn as often as its log-probability says."""
    model, draws = peaked(sharpness=0.5), 4000
    minigrad.manual_seed(3)
    found = generate(model, [[5, 3]] * draws, 2, temperature=1.0, end_id=EOS)
    expected = {(*ids, *[EOS] * ended): score for ids, score, ended in plain_beam(
        model, [5, 3], 200, 200, 2, 0.0, EOS, ())}
    counts = Counter(whole(h) for h in found)
    assert fits(np.array([counts[ids] for ids in expected]), np.exp(list(expected.values())))
    assert all(h.log_probability == pytest.approx(expected[whole(h)], rel=1e-10) for h in found[:100])


# --- Mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("changes", "error", "message"), [
    ({"prompt": [[]]}, ValueError, r"prompt 0 has shape \(0,\)"),
    ({"prompt": [3, 4]}, ValueError, r"\(batch, length\) .* prompt 0 has shape \(\)"),
    ({"prompt": [[11]]}, IndexError, "11"),
    ({"prompt": [np.ma.masked_equal([3, 0], 0)]}, TypeError, "generate: prompts: the array has masked"),
    ({"memory": minigrad.Tensor(np.ones((3, 5, 8)))}, ValueError, "a row for each of the 1 prompts, got shape"),
    ({"max_new_tokens": 41}, ValueError, "41 tokens is longer than the model's 40 positions"),
    ({"beam_size": 2, "top_k": 3}, ValueError, "leave out beam_size"),
    ({"temperature": 0.0}, ValueError, "temperature .* 0.0"),
    ({"top_p": 1.5}, ValueError, "top_p .* 1.5"),
    ({"end_id": 11}, IndexError, "the token 11 .* is outside the vocabulary of 11"),
    ({"end_id": -1, "min_length": 2}, ValueError, "end_id must be at least 0, got -1"),
    ({"end_id": "a"}, TypeError, "end_id must be an integer, got str 'a'"),
    ({"never": [3, -1]}, ValueError, "a token of never must be at least 0, got -1"),
    ({"never": range(11), "top_k": 2}, ValueError, "no token may follow"),
], ids=str)
def test_mistakes(changes, error, message):
    with pytest.raises(error, match=message):
        generate(**{"model": peaked(), "prompt": [[3]], "max_new_tokens": 3} | changes)


def test_a_stream_tells_of_mistakes_at_once():
    for options, message in (({"top_k": 0}, "top_k"), ({"min_length": 4}, "greatest length, 3")):
        with pytest.raises(ValueError, match=message):
            stream(peaked(), [3], 3, **options)


@pytest.mark.parametrize("options", [{}, {"temperature": 1.0}], ids=str)
def test_a_model_without_finite_probabilities(options):
    model = peaked()
    model.layers[1].feed_forward.outer.bias.data[0] = np.nan
    with pytest.raises(NotFinite, match=r"layers\.1\.feed_forward\.outer\.bias"):
        generate(model, PROMPTS, 3, **options)
