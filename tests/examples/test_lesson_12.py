"""Lesson 12: the ten lines are the gradients of the engine, the checks hold, the mistakes do what it says."""

import re

import numpy as np
import pytest

from tests.examples.conftest import LESSONS, cells


@pytest.fixture
def run(lesson):
    return lesson(12)


def test_the_backward_pass_is_ten_lines():
    (cell,) = [cell for cell in cells(LESSONS / "12_backprop_through_attention.py")
               if cell.kind == "code" and cell.text.startswith("dO = ")]
    assert len(cell.text.strip().splitlines()) == 10


def test_they_are_the_gradients_of_the_engine(run):
    differences = run.names["differences"]
    assert set(differences) == {"dO", "dV", "dA", "dS", "dQ", "dK", "dX", "dWQ", "dWK", "dWV", "dWO", "dbQ", "dbV",
                                "dbO"}
    assert max(differences.values()) < 1e-14
    assert np.abs(run.names["dbK"]).max() < 1e-14


def test_the_checks_that_cost_nothing_hold(run):
    checks = run.names["checks"]
    assert len(checks) == 4
    assert max(checks.values()) < 1e-14
    assert checks["dS where the mask forbids"] == checks["dQ of word 0, which sees one key"] == 0
    assert np.abs(run.names["dA"][run.names["forbidden"]]).max() > 1


def test_the_mistakes_do_what_it_says(run):
    found = {line[:28].strip(): [float(number) for number in re.findall(r"\d\.\d+", line)]
             for line in run.printed.splitlines() if "cosine" in line}
    assert found["nothing"] == [1, 1, 0]
    cosine, _, row_sum = found["dS divided by the batch size"]
    assert (0.9 < cosine < 0.999, row_sum) == (True, 0)
    cosine, _, row_sum = found["−D dropped"]
    assert (cosine < 0.6, row_sum > 1) == (True, True)
    cosine, _, row_sum = found["a transpose forgotten in dK"]
    assert (cosine < 0.95, row_sum) == (True, 0)


def test_the_model_copies_and_its_page_is_written(run):
    assert "c a b e d → c a b e d" in run.printed
    page = (run.folder / "runs/lessons/12_backprop_through_attention.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert "decoder.layers.0.cross_attention" in page


def test_a_few_keys_at_a_time_give_the_same(run):
    assert run.names["part"].shape[-1] == 1  # the last part of five keys in twos
    for name, found in run.names["in_parts"].items():
        np.testing.assert_allclose(found, run.names[name], rtol=0, atol=1e-14)
