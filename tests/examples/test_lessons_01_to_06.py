"""The numbers of lessons 1 to 6, worked out anew here."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F


def test_a_derivative_by_hand(lesson):
    run = lesson(1)
    y = math.tanh(0.5)
    dz = 2 * (y - 1) * (1 - y * y)
    expected = [2 * (y - 1), dz, 1.5 * dz, dz, 0.8 * dz]
    assert [run.names[name] for name in ("dy", "dz", "dw", "db", "dx")] == pytest.approx(expected, rel=1e-14)
    assert run.names["tried_w"] == pytest.approx(expected[2], rel=1e-8)
    assert [entry.name for entry in run.names["tape"].in_firing_order()] == ["power", "sub", "tanh", "add", "mul"]
    for name, tensor in [("dw", "W"), ("db", "B"), ("dx", "X")]:
        assert float(run.names[tensor].grad) == pytest.approx(run.names[name], rel=1e-14)
    assert (run.folder / "runs/lessons/01_tape.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_neuron_that_is_saturated_learns_slowly(lesson):
    lines = [line.split() for line in lesson(1).printed.splitlines() if "is below 0.1" in line]
    waits = [int(words[-2].replace(",", "")) for words in lines]
    assert waits[0] == 1
    assert waits[1] > 20_000


def test_softmax_is_nearly_one_hot(lesson):
    run = lesson(2)
    logits = np.array([12, 8, -1, 19]) - 19.0
    expected = np.exp(logits) / np.exp(logits).sum()
    assert run.names["a"] == pytest.approx(expected, rel=1e-14)
    assert run.names["a"].round(4).tolist() == [0.0009, 0, 0, 0.9991]
    assert run.names["J"] == pytest.approx(mg.func.jacobian(F.softmax)(Tensor(logits)).numpy(), abs=1e-16)
    assert run.names["tried"] == pytest.approx(run.names["J"], abs=1e-10)
    assert run.names["dx"] == pytest.approx(run.names["J"] @ run.names["da"], rel=1e-9)


def test_cross_entropy_recovers(lesson):
    run = lesson(2)
    assert run.names["scores"].grad.numpy()[0] == pytest.approx(run.names["a"] - np.eye(4)[2], abs=1e-14)


GIVEN = {  # the sentence 私 は 学校へ 行きます
    "X": [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]],
    "W_Q": [[1, 0], [0, 1], [1, 0], [0, 1]],
    "W_K": [[1, 0], [0, 1], [0, 1], [1, 0]],
    "W_V": [[1, 0], [0, 1], [1, 0], [0, 1]],
}


def table(printed, name):
    """The matrix printed under a name, to its four digits."""
    lines = printed.splitlines()
    start = next(number for number, line in enumerate(lines) if line.split()[:1] == [name])
    rows = [lines[start].split()[1:]]
    rows += [line.split() for line in lines[start + 1:start + 4]]
    return np.array(rows, dtype=float)


def test_attention_by_hand_forward(lesson):
    run = lesson(3)
    for name, matrix in GIVEN.items():
        assert run.names[name].tolist() == matrix
    X, W_Q, W_K, W_V = (np.array(matrix) for matrix in GIVEN.values())
    expected = {"Q": X @ W_Q, "K": X @ W_K, "V": X @ W_V, "R": np.full((4, 4), 2), "S": np.full((4, 4), 1.4142),
                "A": np.full((4, 4), 0.25), "O": np.ones((4, 2))}
    for name, matrix in expected.items():
        assert table(run.printed, name).tolist() == matrix.tolist(), name


def test_attention_by_hand_backward(lesson):
    run = lesson(3)
    x, w_q, w_k, w_v = (Tensor(np.array(matrix, dtype=float), requires_grad=True) for matrix in GIVEN.values())
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    for tensor in (q, k, v):
        tensor.retain_grad()
    out = F.scaled_dot_product_attention(q, k, v)
    (((out[3] - np.array([2.0, 0.0])) ** 2).sum() / 2).backward()
    for name, tensor in {"dX": x, "dW_Q": w_q, "dW_K": w_k, "dW_V": w_v, "dQ": q, "dK": k, "dV": v}.items():
        assert run.names["hand"][name] == pytest.approx(tensor.grad.numpy(), abs=1e-15), name
        assert table(run.printed, name) == pytest.approx(tensor.grad.numpy(), abs=5.001e-5), name
    assert np.abs(run.names["hand"]["dQ"]).max() == 0
    for name, gradient in run.names["learnt"].items():
        assert run.names["engine"][name] == pytest.approx(gradient, rel=1e-9, abs=1e-15), name


def test_attention_in_columns_is_the_transpose(lesson):
    run = lesson(3)
    assert np.ptp(run.names["A"]) > 0.9  # a table that its transpose differs from
    assert run.names["Ac"] == pytest.approx(run.names["A"].T, abs=1e-15)
    assert run.names["Oc"] == pytest.approx(run.names["rows_O"].T, abs=1e-15)
    assert run.names["xc"].grad.numpy() == pytest.approx(run.names["learnt"]["dX"].T, abs=1e-14)
    assert np.abs(run.names["c"].grad.numpy()).max() < 1e-15  # of a bias of the keys


@pytest.mark.parametrize("d_k", [16, 64, 256, 1024])
def test_dead_rows(lesson, d_k):
    """Against NumPy alone: the same sentences, and the rule of softmax written out."""
    found = lesson(4).names["found"]
    q, k, v, g = lesson(4).names["sentences"](d_k)
    for name, scale in [("plain", 1), ("divided", d_k ** -0.5)]:
        scores = q @ k.swapaxes(1, 2) * scale
        A = np.exp(scores - scores.max(axis=-1, keepdims=True))
        A /= A.sum(axis=-1, keepdims=True)
        dA = g @ v.swapaxes(1, 2)
        dS = A * (dA - (A * dA).sum(axis=-1, keepdims=True))
        through = np.linalg.norm(dS, axis=-1) / np.linalg.norm(dA, axis=-1)
        assert found[d_k, name]["through"] == pytest.approx(through, rel=1e-6, abs=1e-15)
        assert found[d_k, name]["dQ"] == pytest.approx(np.linalg.norm(dS @ k * scale, axis=-1), rel=1e-6, abs=1e-12)


def test_the_division_saves_the_gradient(lesson):
    found = lesson(4).names["found"]
    dead = {key: (rows["through"] < 0.01).mean() for key, rows in found.items()}
    plain = [dead[d_k, "plain"] for d_k in (16, 64, 256, 1024)]
    assert plain == sorted(plain)
    assert plain[-1] > 0.8
    assert max(dead[d_k, "divided"] for d_k in (16, 64, 256, 1024)) < 0.002
    sizes = [np.median(found[d_k, "divided"]["dQ"]) for d_k in (16, 64, 256, 1024)]
    assert max(sizes) < 1.15 * min(sizes)


def test_the_causal_table(lesson):
    run = lesson(5)
    assert run.numbers("row 2:") == [0.89, 0.11, 0, 0]
    assert run.numbers("row 3:") == [0.02, 0.54, 0.44, 0]
    assert run.numbers("row 4:") == [0.05, 0.35, 0.52, 0.08]
    A, dA, dS, later = run.names["A"], run.names["dA"], run.names["dS"], ~np.tri(4, dtype=bool)
    assert np.abs(dA[later]).min() > 0
    assert not A[later].any()
    assert not dS[later].any()
    assert dS == pytest.approx(A * (dA - (A * dA).sum(axis=1, keepdims=True)), abs=1e-16)
    assert not run.names["flow"][later].any()
    assert run.names["flow"][~later].min() > 0.1
    assert np.abs(run.names["late"].grad.numpy()[later]).max() > 0.01  # a mask after the softmax lets the future in


def test_padding_and_a_row_that_may_see_nothing(lesson):
    run = lesson(5)
    assert run.names["allowed"][1, 0].astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]
    assert "the same bits: True" in run.printed
    assert np.isnan(run.names["naive"]).all()
    assert not run.names["out"].detach().numpy().any()
    assert not run.names["row"].grad.numpy().any()


def test_attention_alone_is_equivariant(lesson):
    run = lesson(6)
    straight, swapped, order = (run.names[name] for name in ("straight", "swapped", "order"))
    for name in ("output", "dX"):
        assert swapped[name] == pytest.approx(straight[name][order], rel=0, abs=1e-12)
        assert np.abs(straight[name] - swapped[name]).max() > 0.1
    assert swapped["dW"] == pytest.approx(straight["dW"], rel=0, abs=1e-12)
    for name in ("output", "dX"):  # with places it is not
        assert np.abs(run.names["swapped_p"][name] - run.names["straight_p"][name][order]).max() > 0.1


def test_places_mend_it(lesson):
    run = lesson(6)
    last = {name: right[-1] for name, right in run.names["curves"].items()}
    assert last == {"no places": 50, "sinusoidal": 100, "learned": 100}
    one, two = (float(line.split()[-1]) for line in run.printed.splitlines() if line.startswith("layers: "))
    assert one < 1e-12
    assert two > 0.1
