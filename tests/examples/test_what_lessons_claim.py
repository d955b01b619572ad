"""What the lessons show holds: their numbers are worked out anew here."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F


def test_1_a_derivative_by_hand(lesson):
    names = lesson(1).names
    y = math.tanh(0.5)
    dz = 2 * (y - 1) * (1 - y * y)
    expected = [2 * (y - 1), dz, 1.5 * dz, dz, 0.8 * dz]
    assert [names[name] for name in ("dy", "dz", "dw", "db", "dx")] == pytest.approx(expected, rel=1e-14)
    assert names["tried_w"] == pytest.approx(expected[2], rel=1e-8)
    for name, tensor in [("dw", "W"), ("db", "B"), ("dx", "X")]:
        assert float(names[tensor].grad) == pytest.approx(names[name], rel=1e-14)


def test_2_softmax_and_cross_entropy(lesson):
    names = lesson(2).names
    logits = np.array([12, 8, -1, 19]) - 19.0
    assert names["a"] == pytest.approx(np.exp(logits) / np.exp(logits).sum(), rel=1e-14)
    assert names["J"] == pytest.approx(mg.func.jacobian(F.softmax)(Tensor(logits)).numpy(), abs=1e-16)
    assert names["tried"] == pytest.approx(names["J"], abs=1e-10)
    assert names["dx"] == pytest.approx(names["J"] @ names["da"], rel=1e-9)
    assert names["scores"].grad.numpy()[0] == pytest.approx(names["a"] - np.eye(4)[2], abs=1e-14)


def test_3_attention_by_hand(lesson):
    names = lesson(3).names
    x, w_q, w_k, w_v = (Tensor(np.array(names[name], dtype=float), requires_grad=True)
                        for name in ("X", "W_Q", "W_K", "W_V"))
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    for tensor in (q, k, v):
        tensor.retain_grad()
    out = F.scaled_dot_product_attention(q, k, v)
    (((out[3] - np.array([2.0, 0.0])) ** 2).sum() / 2).backward()
    for name, tensor in {"dX": x, "dW_Q": w_q, "dW_K": w_k, "dW_V": w_v, "dQ": q, "dK": k, "dV": v}.items():
        assert names["hand"][name] == pytest.approx(tensor.grad.numpy(), abs=1e-15), name
    for name, gradient in names["learnt"].items():
        assert names["engine"][name] == pytest.approx(gradient, rel=1e-9, abs=1e-15), name
    assert names["Ac"] == pytest.approx(names["A"].T, abs=1e-15)  # in columns it is the transpose
    assert names["xc"].grad.numpy() == pytest.approx(names["learnt"]["dX"].T, abs=1e-14)


def test_4_dead_rows(lesson):
    """Against NumPy alone: the same sentences, and the rule of softmax written out."""
    found, dead = lesson(4).names["found"], {}
    for d_k in (16, 1024):
        q, k, v, g = lesson(4).names["sentences"](d_k)
        for name, scale in [("plain", 1), ("divided", d_k ** -0.5)]:
            scores = q @ k.swapaxes(1, 2) * scale
            A = np.exp(scores - scores.max(axis=-1, keepdims=True))
            A /= A.sum(axis=-1, keepdims=True)
            dA = g @ v.swapaxes(1, 2)
            dS = A * (dA - (A * dA).sum(axis=-1, keepdims=True))
            through = np.linalg.norm(dS, axis=-1) / np.linalg.norm(dA, axis=-1)
            assert found[d_k, name]["through"] == pytest.approx(through, rel=1e-6, abs=1e-15)
            dead[d_k, name] = (through < 0.01).mean()
    assert dead[1024, "plain"] > 0.8
    assert dead[1024, "divided"] < 0.002


def test_5_masks(lesson):
    run = lesson(5)
    names, later = run.names, ~np.tri(4, dtype=bool)
    A, dA, dS = names["A"], names["dA"], names["dS"]
    assert np.abs(dA[later]).min() > 0
    assert not A[later].any()
    assert not dS[later].any()
    assert dS == pytest.approx(A * (dA - (A * dA).sum(axis=1, keepdims=True)), abs=1e-16)
    assert np.abs(names["late"].grad.numpy()[later]).max() > 0.01  # a mask after the softmax lets the future in
    assert names["allowed"][1, 0].astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]
    assert "the same bits: True" in run.printed
    assert np.isnan(names["naive"]).all()  # of a row that may see nothing
    assert not names["out"].detach().numpy().any()


def test_6_attention_alone_is_equivariant_and_places_mend_it(lesson):
    names = lesson(6).names
    straight, swapped, order = (names[name] for name in ("straight", "swapped", "order"))
    for name in ("output", "dX"):
        assert swapped[name] == pytest.approx(straight[name][order], rel=0, abs=1e-12)
        assert np.abs(names["swapped_p"][name] - names["straight_p"][name][order]).max() > 0.1
    last = {name: right[-1] for name, right in names["curves"].items()}
    assert last == {"no places": 50, "sinusoidal": 100, "learned": 100}


def test_7_outputs_are_averages_and_the_feed_forward_bends(lesson):
    names = lesson(7).names
    weights, values, out = (names[name].numpy() for name in ("A", "V", "out"))
    np.testing.assert_allclose(out, weights @ values, rtol=1e-13)
    normals, offsets = np.split(ConvexHull(values).equations, [2], axis=1)
    assert (out @ normals.T + offsets.T).max() < 0
    assert names["gap"](names["attend"]) < 1e-14
    assert names["gap"](names["F"].relu) > 0.5
    assert names["error"] == pytest.approx(1 / 9, abs=1e-4)
    np.testing.assert_allclose(names["together"], names["corners"].prod(axis=1), atol=0.01)


def test_8_heads_are_one_sum_and_one_matrix(lesson):
    names, printed = lesson(8).names, lesson(8).printed
    np.testing.assert_allclose(names["as_sum"], names["Y"], rtol=0, atol=1e-12)
    np.testing.assert_allclose((names["big"] @ names["X"].ravel()).reshape(5, 6), names["Y"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(names["by_product"], names["weights"], rtol=0, atol=1e-12)
    differences = re.findall(r"\b(?:differs? by|by the package:|cut of dC:|side by side:|over heads:) (\S+)", printed)
    assert max(map(float, differences)) < 1e-12


@pytest.mark.slow
def test_9_attention_alone_collapses(lesson):
    names = lesson(9).names
    for before, after in pairwise(names["stack"](names["attend"], 3)):
        assert names["outside"](after, before) < 0
    spread, stacks = names["spread"], names["stacks"]
    assert spread(names["SENTENCE"]) > 0.9
    assert spread(stacks["attention alone"][6]) < 1e-14
    for name, groups in (("feed-forward", 2), ("residual", 3), ("together", 7)):
        assert spread(stacks[name][32]) > 0.6
        assert names["apart"](stacks[name][32]) == groups
    alone = [names["gradient_of_difference"](names["attend"], depth) for depth in (1, 5)]
    assert alone[0] > 1 > 1e-12 > alone[1]
    assert names["gradient_of_difference"](lambda x: x + names["attend"](x), 5) > 1


def test_10_the_road_of_one_gradient(lesson):
    run = lesson(10)
    assert "48 of 48 sentences are right" in run.printed
    assert "keys     change at the places []" in run.printed
    assert "queries  change at the places [3, 4, 5]" in run.printed
    assert run.names["A"][run.names["MIRU"]].argmax() == 3
    for name in ("by_values", "by_keys"):
        assert np.abs(run.names[name]).max() < 1e-15
    for label in ("the value of <eos>:", "from sees into the values:"):
        tried, predicted = run.numbers(label)[:2]
        assert tried == pytest.approx(predicted, rel=1e-6)
    assert not run.names["cross"].gradients["M"][4:].any()  # padding gets nothing


@pytest.mark.slow
def test_11_how_far_each_net_can_see(lesson):
    names = lesson(11).names
    norm = names["norms"]
    slope, _ = np.polyfit(np.arange(5, 41), np.log(norm["recurrent"][5:41]), 1)
    assert -1.5 < slope < -0.3
    assert norm["window"][:13].min() > 1e-3
    assert norm["window"][13:].max() == 0
    assert norm["attention"][1:].max() < 1.3 * norm["attention"][1:].min()
    steps = {name: [net().steps(distance) for distance in (1, 4, 5, 12, 13, 64)] for name, net in names["NETS"].items()}
    assert steps == {"recurrent": [1, 4, 5, 12, 13, 64], "window": [1, 1, 2, 3, math.inf, math.inf],
                     "attention": [1] * 6}
    assert names["reach"](names["Window"]((1, 2))) == 12
    assert names["reach"](names["Recurrent"](), 20) == names["reach"](names["Attention"](), 20) == 19


@pytest.mark.slow
def test_12_ten_lines_are_the_gradients_of_the_engine(lesson):
    run = lesson(12)
    assert max(run.names["differences"].values()) < 1e-14
    assert max(run.names["checks"].values()) < 1e-14
    found = {line[:28].strip(): [float(number) for number in re.findall(r"\d\.\d+", line)]
             for line in run.printed.splitlines() if "cosine" in line}
    assert found["nothing"] == [1, 1, 0]
    cosine, _, row_sum = found["−D dropped"]
    assert cosine < 0.6
    assert row_sum > 1
    assert "c a b e d → c a b e d" in run.printed
    page = (run.folder / "runs/lessons/12_backprop_through_attention.html").read_text(encoding="utf-8")
    assert "decoder.layers.0.cross_attention" in page
    for name, part in run.names["in_parts"].items():  # a few keys at a time
        np.testing.assert_allclose(part, run.names[name], rtol=0, atol=1e-14)
