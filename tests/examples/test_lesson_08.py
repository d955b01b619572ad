"""Lesson 8: the four steps are one sum and one matrix, two heads do what one cannot, the backward cuts and adds."""

import re

import numpy as np
import pytest


@pytest.fixture
def names(lesson):
    return lesson(8).names


def test_the_sum_over_heads_and_the_big_matrix_are_the_layer(names):
    np.testing.assert_allclose(names["as_sum"], names["Y"], rtol=0, atol=1e-12)
    np.testing.assert_allclose((names["big"] @ names["X"].ravel()).reshape(5, 6), names["Y"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(names["by_product"], names["weights"], rtol=0, atol=1e-12)


def test_every_difference_that_it_prints_is_rounding(lesson):
    differences = re.findall(r"\b(?:differs? by|by the package:|cut of dC:|side by side:|over heads:) (\S+)",
                             lesson(8).printed)
    assert len(differences) == 9
    assert max(map(float, differences)) < 1e-12


def test_a_block_of_the_big_matrix_is_what_one_token_takes_from_another(names):
    block = names["big"][6 * 3:6 * 4, 6 * 1:6 * 2]  # to token 3, from token 1
    expected = sum(names["weights"][h][3, 1] * names["M"][h].T for h in range(2))
    np.testing.assert_allclose(block, expected, rtol=1e-14)


def test_the_ranks(names):
    assert [np.linalg.matrix_rank(matrix) for matrix in names["M"]] == [3, 3]


def test_two_heads_do_what_one_cannot(names):
    one, _ = names["train"](1, 250)
    two, weights = names["train"](2, 250)
    assert 0.9 < one < 1.3
    assert two < 0.05
    directions = [np.argmax(head, axis=-1) - np.arange(8) for head in weights]
    assert sorted({int(step) % 8 for step in head} for head in directions) == [{1}, {7}]


def test_a_head_that_is_switched_off(lesson):
    lines = {line[:20].strip(): [float(number) for number in re.findall(r"\d+\.\d+", line)]
             for line in lesson(8).printed.splitlines() if "dquery" in line}
    assert min(lines["as it was"]) > 0.1
    assert lines["W_O,1 = 0"] == [0, 0, 0, lines["as it was"][3]]
    assert min(lines["after one update"]) > 0.1
    assert lines["W_V,1 = 0 as well"] == [0, 0, 0, 0]
