"""Sampling: the draws follow the model's probabilities, restricted and sharpened as asked."""

import math
from collections import Counter

import numpy as np
import pytest
import scipy.stats

import minigrad

from tests.transformer.decoding_models import (
    EOS,
    all_translations,
    peaked_model,
    prefer,
    random_sources,
)
from transformer.decode import greedy, sample
from transformer.decode.sampling import draw

PROBABILITIES = np.array([0.05, 0.3, 0.0, 0.4, 0.15, 0.1])
with np.errstate(divide="ignore"):
    LOGS = np.log(PROBABILITIES)

DRAWS = 20_000
LEAST = 1e-3  # a p-value below this would be a wrong distribution: the seeds are fixed


def frequencies(seed: int, **options) -> np.ndarray:
    uniform = np.random.default_rng(seed).random(DRAWS)
    return np.bincount(draw(np.tile(LOGS, (DRAWS, 1)), uniform, **options), minlength=6)


def fits(counts: np.ndarray, probabilities: np.ndarray) -> bool:
    """Pearson's χ² test; what has probability 0 must not occur at all."""
    possible = probabilities > 0
    expected = probabilities[possible] / probabilities.sum() * counts.sum()
    return counts[~possible].sum() == 0 and scipy.stats.chisquare(counts[possible], expected).pvalue > LEAST


@pytest.mark.parametrize(("options", "expected"), [
    ({}, PROBABILITIES),
    ({"temperature": 0.5}, PROBABILITIES ** 2),
    ({"top_k": 2}, [0, 0.3, 0, 0.4, 0, 0]),
    ({"top_p": 0.6}, [0, 0.3, 0, 0.4, 0, 0]),
    ({"top_k": 3, "top_p": 0.8}, [0, 0.3, 0, 0.4, 0, 0]),  # of the three, 0.7 / 0.85 is more than 0.8
    ({"top_k": 3, "top_p": 0.9}, [0, 0.3, 0, 0.4, 0.15, 0]),
    ({"temperature": 0.5, "top_p": 0.8}, [0, 0.09, 0, 0.16, 0, 0]),  # 0.25 / 0.285 is more than 0.8
], ids=str)
def test_draws_follow_the_distribution(options, expected):
    assert fits(frequencies(1, **options), np.array(expected))


@pytest.mark.parametrize("options", [{}, {"top_k": 3}, {"top_p": 0.99}], ids=str)
def test_the_ends_of_the_unit_interval_draw_what_is_possible(options):
    for uniform in (0.0, np.nextafter(1.0, 0.0)):
        for logs in (np.roll(LOGS, shift) for shift in range(6)):  # the impossible token at every place
            token = int(draw(logs[None], np.array([uniform]), **options)[0])
            assert logs[token] > -math.inf


def test_whole_translations_have_their_probabilities():
    """Every one of the 40 outcomes within three tokens is drawn as often as its log-probability says."""
    model, sources = prefer(peaked_model(0, sharpness=1.0), pad=-1e9, bos=-1e9), random_sources(0, (3, 1))
    minigrad.manual_seed(3)
    found = sample(model, sources, max_length=3, num_samples=4000)
    for hypotheses, source in zip(found, sources, strict=True):
        expected = all_translations(model, source, 3)
        counts = Counter((*h.ids, EOS) if h.finished else tuple(h.ids) for h in hypotheses)
        assert set(counts) <= set(expected)
        assert fits(np.array([counts[ids] for ids in expected]), np.exp(list(expected.values())))
        for h in hypotheses[:100]:
            ids = (*h.ids, EOS) if h.finished else tuple(h.ids)
            assert h.score == h.log_probability == pytest.approx(expected[ids], abs=1e-10)


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-6}], ids=str)
def test_the_narrowest_choice_is_greedy(options):
    model, sources = prefer(peaked_model(1), eos=-1.0), random_sources(1)
    for hypotheses, expected in zip(sample(model, sources, num_samples=2, **options), greedy(model, sources),
                                    strict=True):
        for hypothesis in hypotheses:
            assert (hypothesis.ids, hypothesis.finished) == (expected.ids, expected.finished)
            assert hypothesis.score == pytest.approx(expected.score, abs=1e-10)


def test_a_seed_repeats_the_draws_of_a_row_whatever_its_neighbours_are():
    model = peaked_model(0, sharpness=1.0)
    one, other = random_sources(0, (5, 2, 7)), random_sources(9, (5, 6, 1))
    other[0, :6] = one[0, :6]
    minigrad.manual_seed(7)
    first, second = (sample(model, one, num_samples=3) for _ in range(2))
    assert first != second
    assert all(len({tuple(h.ids) for h in row}) > 1 for row in first)
    minigrad.manual_seed(7)
    assert [h.ids for h in sample(model, other, num_samples=3)[0]] == [h.ids for h in first[0]]


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"temperature": 0.0}, ValueError, "temperature .* 0.0"),
    ({"top_k": 0}, ValueError, "top_k .* 0"),
    ({"top_p": 1.01}, ValueError, "top_p .* 1.01"),
    ({"num_samples": 0}, ValueError, "num_samples .* 0"),
], ids=str)
def test_mistakes(options, error, message):
    with pytest.raises(error, match=message):
        sample(peaked_model(0), [[3, EOS]], **options)
