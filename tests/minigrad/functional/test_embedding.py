"""embedding and linear: which row gets which gradient, and the range check of ids."""

import numpy as np
import pytest

from minigrad import Tensor, fused, grad
from minigrad import functional as F

TABLE = np.arange(12.0).reshape(4, 3)


@pytest.fixture(params=[True, False], ids=["fused", "by steps"])
def form(request):
    with fused(request.param):
        yield


def table(device="cpu", dtype=np.float64):
    return Tensor(TABLE.astype(dtype), device=device, requires_grad=True)


@pytest.mark.parametrize("ids", [
    [[0, 3], [3, 3]], np.array([2, 0], np.int32), np.array([1], np.uint8), np.array(2), Tensor([1, 1]), [], 3,
], ids=repr)
def test_values_and_gradients(form, device, ids):
    weight = table(device)
    if isinstance(ids, list) and not ids:
        ids = np.zeros(0, np.int64)
    host = np.asarray(ids.numpy() if isinstance(ids, Tensor) else ids)
    out = F.embedding(ids, weight)
    assert out.device == device
    np.testing.assert_array_equal(out.numpy(), TABLE[host])
    g = np.random.default_rng(0).normal(size=out.shape)
    out.backward(Tensor(g, device=device))
    expected = np.zeros_like(TABLE)
    np.add.at(expected, host, g)
    np.testing.assert_allclose(weight.grad.numpy(), expected, rtol=1e-14, atol=1e-15)


def test_ids_may_be_on_the_device_already(form, gpu):
    weight = table(gpu)
    out = F.embedding(Tensor([[3, 1], [1, 1]], device=gpu), weight)
    np.testing.assert_array_equal(out.numpy(), TABLE[[[3, 1], [1, 1]]])
    out.sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy()[:, 0], [0, 3, 0, 1])


def test_rows_without_features(form):
    weight = Tensor(np.zeros((4, 0)), requires_grad=True)
    F.embedding([[0, 3]], weight, 0).sum().backward()
    assert weight.grad.shape == (4, 0)


def test_the_accumulating_rule_equals_the_plain_one():
    ids = np.random.default_rng(1).integers(0, 4, size=(5, 7))
    weight = table()
    for padding_idx in (None, 2):
        out = F.embedding(ids, weight, padding_idx)
        g = np.random.default_rng(2).normal(size=out.shape)
        adding = grad(out, weight, g, retain_graph=True)
        plain = grad(out, weight, g, create_graph=True)
        np.testing.assert_allclose(adding.numpy(), plain.numpy(), rtol=1e-14, atol=1e-15)


def test_a_table_read_twice_adds_both_gradients(form):
    weight = table()
    (F.embedding([0, 1], weight).sum() + F.embedding([1, 1], weight).sum() + (weight * 10).sum()).backward()
    np.testing.assert_array_equal(weight.grad.numpy()[:, 0], [11, 13, 10, 10])


def test_a_tied_table_is_read_and_multiplied(form):
    weight = table()
    h = F.embedding([[1, 2]], weight)
    loss = (F.linear(h, weight) ** 2).sum()
    loss.backward()
    epsilon, numeric = 1e-6, np.zeros_like(TABLE)
    for i in np.ndindex(TABLE.shape):
        for sign in (1, -1):
            w = TABLE.copy()
            w[i] += sign * epsilon
            numeric[i] += sign * ((w[[1, 2]] @ w.T) ** 2).sum() / (2 * epsilon)
    np.testing.assert_allclose(weight.grad.numpy(), numeric, rtol=1e-6)


@pytest.mark.parametrize("padding_idx", [2, -2])
def test_the_padding_row_is_read_but_receives_nothing(form, device, padding_idx):
    weight = table(device)
    out = F.embedding([[2, 1], [2, 2]], weight, padding_idx)
    np.testing.assert_array_equal(out.numpy()[0, 0], TABLE[2])
    out.backward(Tensor(np.full(out.shape, 5.0), device=device))
    np.testing.assert_array_equal(weight.grad.numpy(), [[0] * 3, [5] * 3, [0] * 3, [0] * 3])


def test_a_gradient_that_is_not_finite_at_padding_does_not_leak(form):
    weight = table()
    F.embedding([2, 1], weight, padding_idx=2).backward(np.array([[np.nan, np.inf, 1], [1, 1, 1]]))
    np.testing.assert_array_equal(weight.grad.numpy(), [[0] * 3, [1] * 3, [0] * 3, [0] * 3])


def test_second_derivatives(form):
    weight = table()
    out = F.embedding([1, 1, 3], weight, padding_idx=3)
    first = grad((out**3).sum(), weight, create_graph=True)
    second = grad(first.sum(), weight)
    np.testing.assert_allclose(first.numpy()[1], 6 * TABLE[1] ** 2, rtol=1e-14)
    np.testing.assert_allclose(second.numpy()[1], 12 * TABLE[1], rtol=1e-14)
    np.testing.assert_array_equal(second.numpy()[[0, 2, 3]], 0)


@pytest.mark.parametrize(("ids", "worst"), [([0, 4], 4), ([-1, 0], -1), ([[0, 1], [9, -2]], -2)])
def test_ids_on_the_host_are_range_checked_negatives_too(form, device, ids, worst):
    for given in (ids, np.array(ids), Tensor(ids)):
        with pytest.raises(IndexError, match=rf"embedding: id {worst} is out of range; ids must be in \[0, 4\)"):
            F.embedding(given, table(device))


@pytest.mark.parametrize("ids", [[0.0, 1.0], [True, False], np.zeros(2), Tensor([1.0])])
def test_ids_must_be_integers(form, ids):
    with pytest.raises(TypeError, match=r"embedding: ids must be integers, got (float|bool)"):
        F.embedding(ids, table())


@pytest.mark.parametrize("padding_idx", [4, -5])
def test_padding_idx_must_exist(padding_idx):
    with pytest.raises(ValueError, match=rf"embedding: padding_idx {padding_idx} is out of range for 4 rows"):
        F.embedding([0], table(), padding_idx)


# --- linear


def test_linear_is_x_w_transposed_plus_b(form):
    x, w, b = (np.random.default_rng(i).normal(size=shape) for i, shape in enumerate([(2, 3, 4), (5, 4), (5,)]))
    np.testing.assert_allclose(F.linear(Tensor(x), Tensor(w), Tensor(b)).numpy(), x @ w.T + b, rtol=1e-13)
    np.testing.assert_allclose(F.linear(Tensor(x), Tensor(w)).numpy(), x @ w.T, rtol=1e-13)


@pytest.mark.parametrize(("x", "w", "b", "message"), [
    ((2, 3), (5, 4), None, r"input\.shape\[-1\] == weight\.shape\[1\], got \(2, 3\) and \(5, 4\)"),
    ((2, 3), (3,), None, r"got \(2, 3\) and \(3,\)"),
    ((2, 3), (5, 3), (1,), r"bias\.shape"),
    ((2, 3), (5, 3), (3,), r"bias\.shape == \(weight\.shape\[0\],\), got \(3,\) and \(5, 3\)"),
    ((), (5, 3), None, r"got \(\) and \(5, 3\)"),
])
def test_linear_refuses_shapes_that_do_not_fit(form, x, w, b, message):
    with pytest.raises(ValueError, match=f"linear: .*{message}"):
        F.linear(*[None if shape is None else Tensor(np.ones(shape)) for shape in (x, w, b)])


# --- one_hot ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [[[0, 3], [3, 1]], np.array([2, 0], np.int32), np.array(2, np.uint8), Tensor([1, 1])],
                         ids=repr)
def test_one_hot(ids, device):
    host = np.asarray(ids.numpy() if isinstance(ids, Tensor) else ids)
    for given in (ids, Tensor(host, device=device)):
        vectors = F.one_hot(given, 4)
        assert vectors.dtype == np.int64
        np.testing.assert_array_equal(vectors.numpy(), np.eye(4)[host])
        assert vectors.device == (given.device if isinstance(given, Tensor) else "cpu")
        np.testing.assert_array_equal(F.one_hot(given).numpy(), np.eye(host.max() + 1)[host])


def test_one_hot_of_no_ids():
    assert F.one_hot(np.zeros((2, 0), int), 3).shape == (2, 0, 3)


def test_a_product_with_one_hot_vectors_is_a_look_up():
    weight, ids = table(), [[3, 0], [1, 1]]
    looked_up, multiplied = F.embedding(ids, weight), F.one_hot(ids, 4) @ weight
    np.testing.assert_array_equal(multiplied.numpy(), looked_up.numpy())
    g = np.random.default_rng(1).normal(size=(2, 2, 3))
    np.testing.assert_allclose(grad(multiplied, weight, g).numpy(), grad(looked_up, weight, g).numpy(), rtol=1e-14)
