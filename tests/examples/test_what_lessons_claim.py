"""What the lessons show holds: their numbers are worked out anew here."""

import math
import re

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
