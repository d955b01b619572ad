"""Lesson 9: attention stays in the hull, for any weights; alone it collapses; what else is in a layer prevents it."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.spatial import ConvexHull, QhullError

from minigrad import Tensor
from minigrad import functional as F

POLYGONS = st.integers(1, 9).flatmap(lambda count: arrays.arrays("float64", (count, 2), elements=st.floats(-5, 5)))
WEIGHTS = arrays.arrays("float64", (2, 2), elements=st.floats(-3, 3))


@pytest.fixture
def names(lesson):
    return lesson(9).names


def directions(points):
    """Unit vectors that decide membership in the hull: along and across each pair of points, and the axes."""
    edges = np.array([first - second for first, second in combinations(points, 2)] + [[1.0, 0.0]])
    edges = np.vstack([edges, edges[:, ::-1] * [1, -1], [[0.0, 1.0]]])
    lengths = np.linalg.norm(edges, axis=-1, keepdims=True)
    edges = edges[lengths[:, 0] > 1e-9] / lengths[lengths[:, 0] > 1e-9]
    return np.vstack([edges, -edges])


def area(points):
    try:
        return ConvexHull(points).volume
    except (QhullError, ValueError):  # fewer than three points, or all on a line
        return 0.0


@settings(deadline=None, max_examples=100)
@given(POLYGONS, WEIGHTS, WEIGHTS)
def test_every_output_is_in_the_hull_and_the_hull_never_grows(polygon, w_q, w_k):
    out = F.scaled_dot_product_attention(Tensor(polygon @ w_q), Tensor(polygon @ w_k), Tensor(polygon)).numpy()
    for direction in directions(polygon):  # in the hull: in no direction farther than the farthest vertex
        assert (out @ direction).max() <= (polygon @ direction).max() + 1e-12
    assert area(out) <= area(polygon) + 1e-11


@settings(deadline=None, max_examples=30)
@given(POLYGONS)
def test_without_the_identity_as_w_v_it_may_leave(polygon):
    """The property can fail: three times the values is outside, unless the polygon is about the origin."""
    polygon = polygon + np.array([10.0, 0.0])
    out = F.scaled_dot_product_attention(*(Tensor(x) for x in (polygon, polygon, 3 * polygon))).numpy()
    assert (out[:, 0]).max() > polygon[:, 0].max()


def test_each_polygon_of_the_stack_is_inside_the_one_before(names):
    states = names["stack"](names["attend"], 3)
    for before, after in pairwise(states):
        assert names["outside"](after, before) < 0
        assert area(after) < area(before)
    assert names["outside"](3 * states[1], states[0]) > 2


def test_the_spread_is_cubed(names):
    assert np.log10(names["left"][1] / names["left"][2]) == pytest.approx(3, abs=1e-3)


def test_attention_alone_collapses_to_one_point(names):
    assert names["spread"](names["SENTENCE"]) > 0.9
    assert names["spread"](names["stacks"]["attention alone"][4]) < 1e-5
    assert names["spread"](names["stacks"]["attention alone"][6]) < 1e-14


def test_what_delays_the_collapse_and_what_stops_it(names):
    spread, apart, stacks = names["spread"], names["apart"], names["stacks"]
    for name in ("W_V", "norm"):
        assert spread(stacks[name][4]) > 100 * spread(stacks["attention alone"][4])
        assert spread(stacks[name][32]) < 1e-14
    for name, groups in (("feed-forward", 2), ("residual", 3), ("together", 7)):
        assert spread(stacks[name][32]) > 0.6
        assert apart(stacks[name][32]) == groups


def test_with_sharper_scores_w_v_and_norm_stop_it_too(names):
    def sharper(x):
        return F.scaled_dot_product_attention(x, x, x, scale=2.0)

    for layer in (lambda x: 3 * sharper(x), lambda x: names["norm"](sharper(x))):
        assert names["apart"](names["stack"](layer, 32)[-1]) in (2, 3)


def test_the_feed_forward_is_a_clip(names):
    x = np.linspace(-1, 1, 41)
    np.testing.assert_allclose(names["feed_forward"](Tensor(x)).numpy(), np.clip(4 * x, -1, 1), atol=1e-14)


def test_the_gradient_collapses_too(names):
    gradient = names["gradient_of_difference"]
    alone = [gradient(names["attend"], depth) for depth in (1, 2, 3, 4, 5)]
    assert alone[0] > 1 > 1e-3 > alone[3] > 1e-12 > alone[4]
    assert gradient(lambda x: x + names["attend"](x), 5) > 1


def test_the_gradient_is_the_slope(names):
    step, layer = 1e-6, names["attend"]
    direction = np.random.default_rng(0).normal(size=(7, 2))

    def difference(sentence):
        final = names["stack"](layer, 2, sentence)[-1]
        return (final[0] - final[1]).sum()

    sentence = Tensor(names["SENTENCE"], requires_grad=True)
    final = layer(layer(sentence))
    (final[0] - final[1]).sum().backward()
    ahead, behind = (difference(names["SENTENCE"] + sign * step * direction) for sign in (1, -1))
    assert (ahead - behind) / (2 * step) == pytest.approx(float((sentence.grad.numpy() * direction).sum()), rel=1e-7)


@pytest.mark.parametrize("name", ["attention alone", "W_V", "norm", "feed-forward", "residual", "together"])
def test_equal_tokens_stay_equal(names, name):
    final = names["stack"](names["LAYERS"][name], 16, names["twice"])[-1]
    np.testing.assert_allclose(final[0], final[1], rtol=1e-12)


def test_the_film_moves_and_is_small(lesson):
    data = (lesson(9).folder / "runs/lessons/09_a_sentence_as_a_polygon.gif").read_bytes()
    assert data[:6] == b"GIF89a"
    assert len(data) < 300_000
    assert data.count(b"\x21\xf9\x04") > 30  # a graphic control extension begins each frame
