"""The computed permutation: a bijection for every length, well mixed, a function of the seed."""

import numpy as np
import pytest

from transformer.data.permutation import Permutation


@pytest.mark.parametrize("count", [*range(1, 40), 99, 100, 101, 1023, 1024, 1025, 99_991, 300_000])
def test_a_bijection(count):
    for seed in (0, 1):
        assert (np.sort(Permutation(count, seed)(np.arange(count))) == np.arange(count)).all()


def test_a_number_arrives_at_the_same_place_whichever_others_are_computed():
    whole = Permutation(10_007, 3)(np.arange(10_007))
    assert (Permutation(10_007, 3)(np.arange(5000, 6000)) == whole[5000:6000]).all()
    assert (Permutation(10_007, 4)(np.arange(10_007)) != whole).any()


def test_it_mixes_as_a_random_permutation_does():
    """Blocks of the result draw evenly from blocks of the range, and neighbours end up as far apart as any two."""
    count, blocks = 250_000, 25
    arrived = Permutation(count, 7)(np.arange(count))
    table = np.bincount(np.arange(count) * blocks // count * blocks + arrived * blocks // count, minlength=blocks**2)
    expected = count / blocks**2
    chi_squared = ((table - expected)**2 / expected).sum()
    freedom = (blocks - 1)**2
    assert abs(chi_squared - freedom) < 5 * (2 * freedom)**0.5
    distances = np.abs(np.diff(arrived))  # of two random numbers: count / 3 on average, standard deviation count / √18
    assert abs(distances.mean() - count / 3) < 5 * count / (18 * count)**0.5
    assert len(np.unique(np.diff(arrived))) > count / 2, "no step between neighbours is the rule"
