"""What the lessons show holds: their numbers are worked out anew here."""

import re

import numpy as np
import pytest

from minigrad import Tensor
from minigrad import functional as F


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
