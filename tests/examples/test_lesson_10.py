"""Lesson 10: what it says of the encoder, the decoder and the road of one gradient is so."""

import re

import numpy as np
import pytest


@pytest.fixture
def run(lesson):
    return lesson(10)


def row(run, label):
    """The numbers after the last line that starts with a label."""
    line = [line for line in run.printed.splitlines() if line.startswith(label)][-1]
    return [float(number) for number in re.findall(r"[-+]?\d+\.\d+(?:e-\d+)?", line[len(label):])]


def test_the_translator_is_right(run):
    assert "48 of 48 sentences are right" in run.printed


def test_keys_and_values_come_from_the_source_and_queries_from_what_is_written(run):
    assert "keys     change at the places []" in run.printed
    assert "values   change at the places []" in run.printed
    assert "queries  change at the places [3, 4, 5]" in run.printed


def test_the_decoder_looks_at_the_end_for_the_verb_and_the_gradient_ends_at_the_verb(run):
    A, at_words = run.names["A"], run.names["shares"][2]
    miru = run.names["MIRU"]
    assert A[miru].argmax() == 3
    assert at_words[miru].argmax() == 1
    assert run.names["inside"].weights.numpy()[0, 0, 3, 1] > 0.99  # the messenger
    np.testing.assert_allclose(A.sum(axis=1), 1, rtol=1e-12)


def test_the_two_formulas_give_the_gradients(run):
    assert "rows of dY that are not 0: [4]" in run.printed
    for name in ("by_values", "by_keys"):
        assert np.abs(run.names[name]).max() < 1e-15


def test_the_nudges_agree(run):
    for label in ("the value of <eos>:", "from sees into the values:"):
        tried, predicted = row(run, label)
        assert tried == pytest.approx(predicted, rel=1e-6)
        assert predicted > 1e-4


def test_padding_gets_nothing_though_its_weights_have_a_gradient(run):
    cross = run.names["cross"]
    assert np.abs(cross.gradients["A"][:, 4:]).max() > 0.05
    assert not cross.gradients["M"][4:].any()
    whole, parts = cross.gradients["M"][:4], run.names["by_word"]
    np.testing.assert_allclose(whole, parts, rtol=1e-10, atol=1e-15)
