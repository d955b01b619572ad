"""Lesson 7: outputs are averages, a lone token meets an affine map, and the feed-forward bends it."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from minigrad import Tensor

from tests.examples.conftest import LESSONS, cells


@pytest.fixture
def names(lesson):
    return lesson(7).names


def test_outputs_are_averages_of_the_values(names):
    weights, values, out = (names[name].numpy() for name in ("A", "V", "out"))
    assert weights.min() > 0
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-14)
    np.testing.assert_allclose(out, weights @ values, rtol=1e-13)
    normals, offsets = np.split(ConvexHull(values).equations, [2], axis=1)
    assert (out @ normals.T + offsets.T).max() < 0


def test_given_the_weights_attention_is_linear(names):
    assert names["gap"](names["attend"]) < 1e-14
    assert names["gap"](names["F"].relu) > 0.5


def test_no_plane_is_better_than_none(names):
    assert np.abs(names["plane"]).max() < 1e-14
    assert names["error"] == pytest.approx(1 / 9, abs=1e-4)


@pytest.mark.parametrize("feed_forward", [False, True])
def test_attention_alone_is_affine_in_a_lone_token(names, feed_forward):
    names["mg"].manual_seed(3)
    layer = names["Layer"](feed_forward)
    tokens = np.random.default_rng(3).uniform(-1, 1, (50, 2))
    origin = np.zeros((1, 2))
    both, first, second, none = (names["alone"](layer, place) for place in
                                 (tokens + tokens[::-1], tokens, tokens[::-1], origin))
    bend = np.abs(both + none - first - second).max()
    assert (bend > 0.01) if feed_forward else (bend < 1e-5)


def test_the_feed_forward_learns_what_attention_alone_cannot(names):
    alone, with_feed_forward = (names["errors"](names["train"](feed_forward, 400)) for feed_forward in (False, True))
    assert alone[0] > 1 / 9 > 0.09 > alone[3]  # a lone token, and one of four
    assert max(with_feed_forward) < 0.01


def test_the_answer_is_a_net_of_two_tanh_units(names):
    np.testing.assert_allclose(names["together"], names["hidden"], rtol=1e-13)
    np.testing.assert_allclose(names["together"], names["corners"].prod(axis=1), atol=0.01)
    tokens = Tensor(np.random.default_rng(0).normal(size=(20, 2))).numpy()
    by_itself = [float(names["attention_alone"](token[None])[0]) for token in tokens]
    np.testing.assert_allclose(by_itself, tokens[:, 0] - tokens[:, 1] + 1, rtol=1e-12)


def test_the_words_and_the_code_train_alike():
    prose, code = ("".join(cell.text for cell in cells(LESSONS / "07_why_a_feed_forward.py") if cell.kind == kind)
                   for kind in ("markdown", "code"))
    assert "sentences, of one to four random tokens" in " ".join(prose.split())
    assert "length=1 + update % 4" in code
