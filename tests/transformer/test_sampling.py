"""Sampling: the draws follow the model's probabilities, restricted and sharpened as asked."""

import math

import numpy as np
import pytest
import scipy.stats

from transformer.decode import Controls

PROBABILITIES = np.array([0.05, 0.3, 0.0, 0.4, 0.15, 0.1])
with np.errstate(divide="ignore"):
    LOGS = np.log(PROBABILITIES)

DRAWS = 20_000
LEAST = 1e-3  # a p-value below this would be a wrong distribution: the seeds are fixed


def frequencies(seed, **options):
    uniform = np.random.default_rng(seed).random(DRAWS)
    return np.bincount(Controls(**options).draw(np.tile(LOGS, (DRAWS, 1)), uniform), minlength=6)


def fits(counts, probabilities):
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
    ({"temperature": 0.5, "top_p": 0.8}, [0, 0.09, 0, 0.16, 0, 0]),  # 0.25 / 0.285 is more than 0.8
], ids=str)
def test_draws_follow_the_distribution(options, expected):
    assert fits(frequencies(1, **options), np.array(expected))


@pytest.mark.parametrize("options", [{}, {"top_k": 3}, {"top_p": 0.99}], ids=str)
def test_the_ends_of_the_unit_interval_draw_what_is_possible(options):
    for uniform in (0.0, np.nextafter(1.0, 0.0)):
        for logs in (np.roll(LOGS, shift) for shift in range(6)):  # the impossible token at every place
            token = int(Controls(**options).draw(logs[None], np.array([uniform]))[0])
            assert logs[token] > -math.inf
