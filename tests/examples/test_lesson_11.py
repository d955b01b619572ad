"""Lesson 11: how far each net can see, how far its gradient comes, and that it learns as far as that."""

import math
import re

import numpy as np
import pytest


@pytest.fixture
def names(lesson):
    return lesson(11).names


def test_the_task(names):
    ids, symbols = names["sequences"](np.random.default_rng(0), 500, 6)
    assert ids.shape == (500, 7)
    np.testing.assert_array_equal(ids[:, 0], symbols)
    assert (set(symbols.tolist()), set(ids[:, 1:].ravel().tolist())) == (set(range(8)), set(range(8, 16)))


def test_the_gradient_of_the_recurrent_net_falls_exponentially(names):
    norm = names["norms"]["recurrent"]
    logarithms = np.log(norm[5:41])
    slope, offset = np.polyfit(np.arange(5, 41), logarithms, 1)
    assert -1.5 < slope < -0.3
    assert np.abs(logarithms - (slope * np.arange(5, 41) + offset)).max() < 1  # of 20 and more


def test_the_gradient_of_the_window_net_ends(names):
    norm = names["norms"]["window"]
    assert norm[:13].min() > 1e-3
    assert norm[13:].max() == 0


def test_the_gradient_of_attention_is_level_and_diluted(names):
    norm = names["norms"]["attention"]
    assert norm[1:].max() < 1.3 * norm[1:].min()
    assert names["attention_near"] / names["attention_far"] == pytest.approx(65 / 17, rel=0.1)


def test_the_gradient_is_that_of_the_loss(names):
    """The gradient at each embedding, against central differences, for every net."""
    rng = np.random.default_rng(0)
    ids, symbols = names["sequences"](rng, 2, 5)
    for net in names["NETS"].values():
        names["mg"].manual_seed(1)
        model = names["Recall"](net()).to(dtype="float64")
        x = model.embed(ids).detach()
        x.requires_grad = True

        def loss(x, model=model):
            return names["F"].cross_entropy(model.answer(model.reader(x)), symbols)

        loss(x).backward()
        direction = rng.normal(size=x.shape)
        ahead, behind = (float(loss(names["Tensor"](x.numpy() + step * direction))) for step in (1e-5, -1e-5))
        assert (ahead - behind) / 2e-5 == pytest.approx(float((x.grad.numpy() * direction).sum()), rel=1e-6)


def test_steps(names):
    steps = {name: [net().steps(distance) for distance in (1, 4, 5, 12, 13, 64)] for name, net in names["NETS"].items()}
    assert steps["recurrent"] == [1, 4, 5, 12, 13, 64]
    assert steps["window"] == [1, 1, 2, 3, math.inf, math.inf]
    assert steps["attention"] == [1] * 6


@pytest.mark.parametrize(("dilations", "distance"), [((1,), 4), ((1, 1, 1), 12), ((1, 2), 12), ((1, 2, 4, 8, 16), 124)])
def test_reach(names, dilations, distance):
    assert names["reach"](names["Window"](dilations)) == distance


def test_the_recurrent_net_and_attention_reach_all(names):
    assert names["reach"](names["Recurrent"](), 20) == 19
    assert names["reach"](names["Attention"](), 20) == 19


@pytest.mark.parametrize(("name", "distance"), [("recurrent", 4), ("window", 12), ("attention", 32)])
def test_it_learns_as_far_as_its_gradient_comes(names, name, distance):
    assert names["accuracy"](name, distance, seed=0, updates=250) > 0.95


def test_it_learns_no_farther(names):
    assert names["accuracy"]("window", 13, seed=0, updates=50) < 0.25
    assert names["accuracy"]("recurrent", 24, seed=0, updates=50) < 0.25


def test_the_costs_are_measured_and_told_with_the_machine(lesson):
    run = lesson(11)
    assert re.search(r"measured now on \S+, \w+, Python \d\.\d+\.\d+\S*, NumPy \d", run.printed)
    assert all(np.isfinite(times).all() and min(times) > 0 for times in run.names["cost"].values())
