"""softmax, log_softmax, layer_norm, gelu: values against closed forms, and the edges."""

import math

import numpy as np
import pytest
import scipy.special

from minigrad import Tensor, fused, grad
from minigrad import functional as F

INF = math.inf


def leaf(values, dtype=np.float64):
    return Tensor(np.array(values, dtype), requires_grad=True)


@pytest.fixture(params=[True, False], ids=["fused", "by steps"], autouse=True)
def form(request):
    with fused(request.param):
        yield


# --- softmax


def test_softmax_values():
    x = np.random.default_rng(0).normal(size=(3, 4, 5)) * 10
    for axis in (0, 1, -1, -3):
        y = F.softmax(Tensor(x), axis=axis)
        np.testing.assert_allclose(y.numpy(), scipy.special.softmax(x, axis=axis), rtol=1e-13)
        np.testing.assert_allclose(y.numpy().sum(axis=axis), 1, rtol=1e-14)
        np.testing.assert_allclose(F.log_softmax(Tensor(x), axis=axis).numpy(), scipy.special.log_softmax(x, axis=axis),
                                   rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0, 12, -12, 60, -60, 100, -100, 400, -400, 1000, -1000])
def test_a_row_is_the_same_wherever_its_scores_lie_and_whatever_other_rows_are(dtype, offset):
    """Where sums of plain exponentials would leave the range, a row is shifted by its maximum: it, and no other."""
    x = (np.random.default_rng(3).integers(-64, 64, size=(3, 6)) / 16).astype(dtype)  # adding the offset is exact
    moved = x + np.array([[0], [offset], [0]], dtype)
    y, z = F.softmax(Tensor(x)).numpy(), F.softmax(Tensor(moved)).numpy()
    np.testing.assert_array_equal(y[[0, 2]], z[[0, 2]])
    np.testing.assert_allclose(z, scipy.special.softmax(x.astype(np.float64), axis=-1), rtol=20 * np.finfo(dtype).eps)


def test_small_probabilities_of_very_negative_scores_do_not_vanish():
    y = F.softmax(Tensor(np.array([[-43.0, -104.0], [-20.0, -80.0], [3.0, -70.0]], np.float32))).numpy()
    np.testing.assert_allclose(y[:, 1], np.exp([-61.0, -60.0, -73.0]), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_softmax_of_huge_and_tiny_scores_does_not_overflow(dtype):
    big = float(np.finfo(dtype).max) / 4
    x = leaf([[big, 0.0, -big], [big, big, big], [-big, -big, -big]], dtype)
    y = F.softmax(x)
    np.testing.assert_allclose(y.numpy(), [[1, 0, 0], [1 / 3] * 3, [1 / 3] * 3], rtol=1e-3)
    (gradient,) = grad((y * Tensor([1.0, 2.0, 3.0], dtype=dtype)).sum(), [x])
    assert np.isfinite(gradient.numpy()).all()


def test_a_row_of_minus_infinity_gives_zeros_and_a_zero_gradient_to_second_order():
    x = leaf([[-INF] * 3, [1.0, -INF, 2.0], [0.0, 1.0, 2.0]])
    y = F.softmax(x)
    np.testing.assert_array_equal(y.numpy()[0], 0)
    assert y.numpy()[1, 1] == 0
    np.testing.assert_allclose(y.numpy()[1, [0, 2]], scipy.special.softmax([1, 2]), rtol=1e-15)
    w = Tensor(np.random.default_rng(1).normal(size=(3, 3)))
    first = grad((y * y * w).sum(), x, create_graph=True)
    second = grad((first * first).sum(), x)
    for g in (first.numpy(), second.numpy()):
        assert np.isfinite(g).all()
        np.testing.assert_array_equal(g[0], 0)
        assert g[1, 1] == 0
        assert (g[2] != 0).all()


def test_the_gradient_of_softmax_does_not_depend_on_the_batch_size():
    """Rows are independent: the gradient of one row is the same alone and among others."""
    x = np.random.default_rng(2).normal(size=(5, 4))
    w = np.random.default_rng(3).normal(size=(5, 4))
    together = leaf(x)
    (F.softmax(together) * Tensor(w)).sum().backward()
    for i in range(5):
        a = scipy.special.softmax(x[i])
        jacobian = np.diag(a) - np.outer(a, a)
        np.testing.assert_allclose(together.grad.numpy()[i], jacobian @ w[i], rtol=1e-12, atol=1e-15)


def test_log_softmax_where_some_scores_are_minus_infinity():
    x = leaf([[1.0, -INF, 2.0]])
    y = F.log_softmax(x)
    assert y.numpy()[0, 1] == -INF
    g = grad(y[:, 0].sum(), x)
    np.testing.assert_allclose(g.numpy(), [[1, 0, 0]] - scipy.special.softmax([[1, -INF, 2]]), rtol=1e-13)


def test_log_softmax_keeps_its_digits_where_the_scores_are_large():
    x = Tensor(np.array([[-1e8, -1e8, -1e8 - 1]]))
    np.testing.assert_allclose(F.log_softmax(x).numpy(), scipy.special.log_softmax([[0.0, 0, -1]]), rtol=1e-15)


def test_log_softmax_of_a_row_of_minus_infinity_stays_so():
    x = leaf([[-INF, -INF], [0.0, 1.0]])
    y = F.log_softmax(x)
    np.testing.assert_array_equal(y.numpy()[0], -INF)
    assert np.isfinite(grad(y[1].sum(), x).numpy()).all()


def test_axes_that_do_not_exist():
    with pytest.raises(IndexError):
        F.softmax(leaf([1.0, 2.0]), axis=1)


# --- layer_norm


def test_layer_norm_values():
    x = np.random.default_rng(4).normal(3.0, 5.0, size=(2, 3, 8))
    weight, bias = np.linspace(0.5, 2, 8), np.linspace(-1, 1, 8)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(F.layer_norm(Tensor(x), Tensor(weight), Tensor(bias)).numpy(), expected, rtol=1e-12)


def test_layer_norm_of_a_constant_row_is_the_bias_and_its_gradient_finite():
    x = leaf(np.full((2, 4), 7.0))
    y = F.layer_norm(x, leaf(np.ones(4)), leaf([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(y.numpy(), [[1, 2, 3, 4]] * 2)
    g = grad((y**2).sum(), x).numpy()
    np.testing.assert_allclose(g, 2 * (np.array([[1, 2, 3, 4]] * 2) - 2.5) / math.sqrt(1e-5), rtol=1e-12)


def test_layer_norm_gradients_are_orthogonal_to_shifts_and_almost_to_scalings():
    """x and a·x + b give the same output (but for eps), so along the ones vector and along x nothing changes."""
    x = leaf(np.random.default_rng(5).normal(size=(3, 6)))
    g = grad((F.layer_norm(x, eps=1e-12) * Tensor(np.random.default_rng(6).normal(size=(3, 6)))).sum(), x).numpy()
    np.testing.assert_allclose(g.sum(axis=-1), 0, atol=1e-13)
    np.testing.assert_allclose((g * x.numpy()).sum(axis=-1), 0, atol=1e-10)


def test_layer_norm_of_large_float16_rows():
    """The squares of 300 elements sum to more than float16 holds."""
    x = np.random.default_rng(7).normal(0.0, 30.0, size=(2, 300)).astype(np.float16)
    y = F.layer_norm(Tensor(x)).numpy()
    exact = x.astype(np.float64)
    exact = (exact - exact.mean(-1, keepdims=True)) / exact.std(-1, keepdims=True)
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, exact, atol=1e-2)


@pytest.mark.parametrize(("weight", "bias"), [((3,), None), (None, (3,)), ((2, 4), None), ((1,), (4,))])
def test_layer_norm_refuses_parameters_of_other_shapes(weight, bias):
    ones = [None if shape is None else Tensor(np.ones(shape)) for shape in (weight, bias)]
    message = r"layer_norm: (weight|bias)\.shape == \(input\.shape\[-1\],\), got"
    with pytest.raises(ValueError, match=message):
        F.layer_norm(leaf(np.ones((2, 4))), *ones)


# --- gelu


def test_gelu_values():
    x = np.linspace(-4, 4, 33)
    np.testing.assert_allclose(F.gelu(Tensor(x)).numpy(), x * 0.5 * (1 + scipy.special.erf(x / np.sqrt(2))), rtol=1e-13)
    tanh = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(F.gelu(Tensor(x), approximate="tanh").numpy(), tanh, rtol=1e-13)
    assert 0 < np.abs(tanh - F.gelu(Tensor(x)).numpy()).max() < 1e-3


def test_gelu_far_from_zero_has_finite_gradients():
    x = leaf([-1e4, -50.0, 0.0, 50.0, 1e4])
    for approximate in ("none", "tanh"):
        with np.errstate(over="ignore"):
            (g,) = grad(F.gelu(x, approximate).sum(), [x])
        np.testing.assert_allclose(g.numpy(), [0, 0, 0.5, 1, 1], atol=1e-12)


def test_gelu_refuses_other_approximations():
    with pytest.raises(ValueError, match="approximate must be 'none' or 'tanh', got 'sigmoid'"):
        F.gelu(leaf([1.0]), approximate="sigmoid")
