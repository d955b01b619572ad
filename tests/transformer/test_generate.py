"""Continuing prompts with a decoder-only model, held to what follows from the logits of whole texts."""

import itertools
from collections import Counter

import numpy as np
import pytest

import minigrad
from minigrad import functional as F
from minigrad import nn

from tests.transformer.test_beam import normalised
from tests.transformer.test_language_model import language_model
from tests.transformer.test_sampling import fits
from transformer import generate
from transformer.decode import stream
from transformer.finite import NotFinite

PROMPTS = [[5, 3, 9], [4], [8, 8, 1], [2, 7], [1, 2, 3, 4, 5]]
END, LETTERS = 2, (1, 3, 4)
NEVER = tuple(token for token in range(11) if token != END and token not in LETTERS)


def peaked(sharpness=6.0, **options):
    """A model that is certain of itself, with dropout that evaluation leaves out."""
    model = language_model(**{"dropout": 0.3, "num_layers": 2, "max_length": 40, "tie_output": False} | options)
    model.projection.weight.data[...] *= sharpness
    return model


class WithoutCache(nn.Module):
    """The same function, by a forward that no cache can serve."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, memory=None):
        return self.model(ids, memory)


def following(model, ids):
    """log P(token | ids), (V,), by the whole forward."""
    with minigrad.no_grad(), nn.evaluating():
        return F.log_softmax(model([ids]).numpy()[0, -1])


def greedily(model, prompt, count, end=None):
    """The ids and their log-probability, everything computed anew for each token."""
    ids, total = list(prompt), 0.0
    for _ in range(count):
        row = following(model, ids)
        total += row.max()
        if row.argmax() == end:
            break
        ids.append(int(row.argmax()))
    return ids[len(prompt):], total


def all_continuations(model, prompt, length):
    """The log-probability of every continuation of LETTERS that ends within `length` tokens, or has as many."""
    found, known = {}, {(): 0.0}
    for count in range(length):
        for letters in itertools.product(LETTERS, repeat=count):
            row = following(model, [*prompt, *letters])
            found[(*letters, END)] = known[letters] + row[END]
            known |= {(*letters, letter): known[letters] + row[letter] for letter in LETTERS}
    return found | {ids: value for ids, value in known.items() if len(ids) == length}


def whole(hypothesis):
    return (*hypothesis.ids, END) if hypothesis.finished else tuple(hypothesis.ids)


# --- Greedy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [None, 6])
@pytest.mark.parametrize("change", [lambda model: model, WithoutCache], ids=["cached", "computed anew"])
def test_the_most_probable_token_follows(change, end):
    """In batches of prompts of unequal lengths, each as it would be alone."""
    model = peaked(sharpness=2.0)
    found = generate(change(model), PROMPTS, 12, end_id=end)
    for prompt, hypothesis in zip(PROMPTS, found, strict=True):
        ids, total = greedily(model, prompt, 12, end)
        assert hypothesis.ids == ids
        assert hypothesis.finished is (len(ids) < 12)
        assert hypothesis.score == hypothesis.log_probability == pytest.approx(total, rel=1e-12)
    assert len({hypothesis.finished for hypothesis in found}) == (1 if end is None else 2)


def test_an_array_of_prompts_and_threads_make_no_difference():
    model, prompts = peaked(), np.random.default_rng(0).integers(0, 11, (40, 3))
    expected = [greedily(model, prompt, 5)[0] for prompt in prompts]
    assert [h.ids for h in generate(model, minigrad.Tensor(prompts), 5)] == expected
    with minigrad.parallel.threads(2):
        assert [h.ids for h in generate(model, prompts, 5)] == expected


def test_the_model_keeps_its_mode_and_each_token_is_read_once(monkeypatch):
    model, read = peaked().train(), []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda ids, cache: read.append(out := forward(ids, cache=cache)) or out)
    generate(model, [[5, 3, 9], [4, 4, 4]], 4)
    assert [logits.shape for logits in read] == [(2, 3, 11), *[(2, 1, 11)] * 3]
    assert all(module.training for module in model.modules())
    assert minigrad.is_grad_enabled()


# --- Beam search ----------------------------------------------------------------------------------

@pytest.mark.parametrize("alpha", [0.6, 0.0])
@pytest.mark.parametrize("change", [lambda model: model, WithoutCache], ids=["cached", "computed anew"])
def test_a_wide_beam_finds_what_exhaustive_search_finds(change, alpha):
    """Of the 121 continuations that end within five tokens."""
    model = peaked(sharpness=3.0)
    found = generate(change(model), PROMPTS[:4], 5, beam_size=400, alpha=alpha, end_id=END,
                     never=NEVER)
    for prompt, hypothesis in zip(PROMPTS, found, strict=False):
        ended = {ids: normalised(value, len(ids), alpha)
                 for ids, value in all_continuations(model, prompt, 5).items() if ids[-1] == END}
        assert len(ended) == 121
        assert whole(hypothesis) == max(ended, key=ended.get)
        assert hypothesis.score == pytest.approx(max(ended.values()), rel=1e-10)


@pytest.mark.parametrize("options", [{}, {"positions": "rotary", "num_kv_heads": 1}], ids=str)
def test_a_narrow_beam_is_the_same_with_and_without_a_cache(options, device):
    """Hypotheses change their places, and prompts leave the batch."""
    model = peaked(sharpness=1.5, **options).to(device)
    ways = [generate(each, PROMPTS[::2] + PROMPTS, 15, beam_size=3, end_id=END)
            for each in (model, WithoutCache(model))]
    assert [whole(h) for h in ways[0]] == [whole(h) for h in ways[1]]
    np.testing.assert_allclose(*([h.score for h in way] for way in ways), rtol=1e-10)
    assert len({len(h.ids) for h in ways[0]}) > 1


@pytest.mark.parametrize("options", [{}, {"beam_size": 3}, {"temperature": 1.0}], ids=str)
def test_each_prompt_attends_to_its_own_memory(options, device):
    """In batches of prompts of unequal lengths that leave at different times, as alone; with a cache and without."""
    model = peaked(sharpness=1.5, cross_attention=True).to(device)
    memory = minigrad.Tensor(np.random.default_rng(3).normal(size=(8, 5, 8)) * 3, device=device)

    def found(each, rows):
        with minigrad.random.fork(2):
            return [whole(h) for h in generate(each, [(PROMPTS[::2] + PROMPTS)[row] for row in rows], 15, end_id=END,
                                               memory=memory[np.array(rows)], **options)]

    together = found(model, range(8))
    assert len({len(ids) for ids in together}) > 1
    assert together == found(WithoutCache(model), range(8))
    if "temperature" in options:  # the draws of the first rows do not depend on the others
        assert together[:3] == found(model, range(3))
    else:
        assert together == [ids for row in range(8) for ids in found(model, [row])]
    with pytest.raises(ValueError, match=r"a row for each of the 2 prompts, got shape \(8, 5, 8\)"):
        generate(model, PROMPTS[:2], 3, memory=memory)


# --- Sampling -------------------------------------------------------------------------------------


def test_draws_have_the_probabilities_of_the_model():
    """Every continuation of at most two tokens is drawn as often as its log-probability says."""
    model, draws = peaked(sharpness=0.5), 4000
    minigrad.manual_seed(3)
    found = generate(model, [[5, 3]] * draws, 2, temperature=1.0, end_id=END)
    firsts = following(model, [5, 3])
    expected = {(END,): firsts[END]}
    for first in set(range(11)) - {END}:
        row = firsts[first] + following(model, [5, 3, first])
        expected |= {(first, second): row[second] for second in range(11)}
    counts = Counter(whole(h) for h in found)
    assert fits(np.array([counts[ids] for ids in expected]), np.exp(list(expected.values())))
    for h in found[:100]:
        assert h.log_probability == pytest.approx(expected[whole(h)], rel=1e-10)


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-6}], ids=str)
def test_the_narrowest_choice_is_greedy(options):
    model = peaked()
    assert [h.ids for h in generate(model, PROMPTS, 6, **options)] == [h.ids for h in generate(model, PROMPTS, 6)]


def test_a_seed_repeats_the_draws_whatever_prompts_follow(device):
    model, seeded = peaked(sharpness=1.0).to(device), []
    for prompts in (PROMPTS[:2], PROMPTS, PROMPTS[:2]):
        minigrad.manual_seed(7)
        seeded.append([h.ids for h in generate(model, prompts, 8, temperature=1.0)][:2])
    assert seeded[0] == seeded[1] == seeded[2]
    assert [h.ids for h in generate(model, PROMPTS[:2], 8, temperature=1.0)] != seeded[0]


# --- Streaming ------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"end_id": 6}, {"temperature": 1.0, "top_k": 5}], ids=str)
def test_a_stream_has_the_tokens_of_generate(options):
    model = peaked(sharpness=2.0)
    for prompt in PROMPTS:
        minigrad.manual_seed(1)
        [expected] = generate(model, [prompt], 10, **options)
        minigrad.manual_seed(1)
        tokens = stream(model, prompt, 10, **options)
        for token, other in zip(tokens, expected.ids, strict=True):
            assert token == other
            assert minigrad.is_grad_enabled()
            assert model.training


def test_a_stream_attends_to_a_memory():
    model, memory = peaked(cross_attention=True), minigrad.Tensor(np.random.default_rng(3).normal(size=(1, 5, 8)))
    assert [*stream(model, PROMPTS[0], 10, memory=memory)] == generate(model, PROMPTS[:1], 10, memory=memory)[0].ids


# --- Mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"prompt": [[]]}, ValueError, r"prompt 0 has shape \(0,\)"),
    ({"prompt": [3, 4]}, ValueError, r"\(batch, length\) .* prompt 0 has shape \(\)"),
    ({"prompt": [[11]]}, IndexError, "11"),
    ({"prompt": np.ma.masked_equal([[3, 0]], 0)}, TypeError, "generate: prompts: the array has masked elements"),
    ({"prompt": [[4, 5], np.ma.masked_equal([3, 0], 0)]}, TypeError, "masked elements"),
    ({"max_new_tokens": 41}, ValueError, "41 tokens is longer than the model's 40 positions"),
    ({"max_new_tokens": 0}, ValueError, "max_new_tokens .* 0"),
    ({"beam_size": 0}, ValueError, "beam_size .* 0"),
    ({"beam_size": 2, "top_k": 3}, ValueError, "leave out beam_size"),
    ({"temperature": 0.0}, ValueError, "temperature .* 0.0"),
    ({"top_p": 1.5}, ValueError, "top_p .* 1.5"),
    ({"foo": 1}, TypeError, "no option foo; .* no_repeat_ngram_size"),
    ({"end_id": 11}, IndexError, "the token 11 that ends a text is outside the vocabulary of 11"),
], ids=str)
def test_mistakes(arguments, error, message):
    with pytest.raises(error, match=message):
        generate(**{"model": peaked(), "prompt": [[3]], "max_new_tokens": 3} | arguments)


@pytest.mark.parametrize(("prompt", "options", "error", "message"), [
    ([[3]], {}, ValueError, "prompts must be"),
    ([3], {"top_k": 0}, ValueError, "top_k"),
    ([3], {"beam_size": 2}, TypeError, "no option beam_size"),
], ids=str)
def test_a_stream_tells_of_mistakes_at_once(prompt, options, error, message):
    with pytest.raises(error, match=message):
        stream(peaked(), prompt, 3, **options)


@pytest.mark.parametrize("options", [{}, {"temperature": 1.0}, {"beam_size": 2}], ids=str)
def test_a_model_without_finite_probabilities(options):
    model = peaked()
    model.layers[1].feed_forward.outer.bias.data[0] = np.nan
    with pytest.raises(NotFinite, match=r"layers\.1\.feed_forward\.outer\.bias"):
        generate(model, PROMPTS, 3, **options)
