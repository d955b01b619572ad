"""softmax and log_softmax: values against SciPy, and the edges."""

import math

import numpy as np
import pytest
import scipy.special

from minigrad import Tensor, grad
from minigrad import functional as F

INF = math.inf
pytestmark = pytest.mark.usefixtures("form")


def leaf(values, dtype=np.float64):
    return Tensor(np.array(values, dtype), requires_grad=True)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_values(axis):
    x = np.random.default_rng(0).normal(size=(3, 4, 5)) * 10
    np.testing.assert_allclose(F.softmax(Tensor(x), axis=axis).numpy(), scipy.special.softmax(x, axis), rtol=1e-13)
    np.testing.assert_allclose(F.log_softmax(Tensor(x), axis=axis).numpy(), scipy.special.log_softmax(x, axis),
                               rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_is_the_same_wherever_its_scores_lie_and_whatever_other_rows_are(dtype):
    """Where sums of plain exponentials would leave the range, a row is shifted by its maximum: it, and no other."""
    x = (np.random.default_rng(3).integers(-64, 64, size=(3, 6)) / 16).astype(dtype)  # adding the offset is exact
    y, expected = F.softmax(Tensor(x)).numpy(), scipy.special.softmax(x.astype(np.float64), axis=-1)
    for offset in (0, 12, -12, 60, -60, 100, -100, 400, -400, 1000, -1000):
        z = F.softmax(Tensor(x + np.array([[0], [offset], [0]], dtype))).numpy()
        np.testing.assert_array_equal(y[[0, 2]], z[[0, 2]])
        np.testing.assert_allclose(z, expected, rtol=20 * np.finfo(dtype).eps)


def test_small_probabilities_of_very_negative_scores_do_not_vanish():
    y = F.softmax(Tensor(np.array([[-43.0, -104.0], [-20.0, -80.0], [3.0, -70.0]], np.float32))).numpy()
    np.testing.assert_allclose(y[:, 1], np.exp([-61.0, -60.0, -73.0]), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_softmax_of_huge_and_tiny_scores_does_not_overflow(dtype):
    big = float(np.finfo(dtype).max) / 4
    x = leaf([[big, 0.0, -big], [big, big, big], [-big, -big, -big]], dtype)
    y = F.softmax(x)
    np.testing.assert_allclose(y.numpy(), [[1, 0, 0], [1 / 3] * 3, [1 / 3] * 3], rtol=1e-3)
    assert np.isfinite(grad((y * Tensor([1.0, 2.0, 3.0], dtype=dtype)).sum(), x).numpy()).all()


def test_a_row_of_minus_infinity_gives_zeros_and_a_zero_gradient_to_second_order():
    x = leaf([[-INF] * 3, [1.0, -INF, 2.0], [0.0, 1.0, 2.0]])
    y = F.softmax(x)
    np.testing.assert_allclose(y.numpy()[:2], [[0] * 3, scipy.special.softmax([1, -INF, 2])], rtol=1e-15)
    w = Tensor(np.random.default_rng(1).normal(size=(3, 3)))
    first = grad((y * y * w).sum(), x, create_graph=True)
    second = grad((first * first).sum(), x)
    for g in (first.numpy(), second.numpy()):
        assert np.isfinite(g).all()
        np.testing.assert_array_equal(g[0], 0)
        assert g[1, 1] == 0
        assert (g[2] != 0).all()


def test_the_gradient_of_softmax_does_not_depend_on_the_batch_size():
    """Rows are independent: the gradient of one row is its own, alone and among others."""
    x, w = np.random.default_rng(2).normal(size=(2, 5, 4))
    together = leaf(x)
    (F.softmax(together) * Tensor(w)).sum().backward()
    for i, a in enumerate(scipy.special.softmax(x, axis=-1)):
        expected = (np.diag(a) - np.outer(a, a)) @ w[i]
        np.testing.assert_allclose(together.grad.numpy()[i], expected, rtol=1e-12, atol=1e-15)


def test_log_softmax_where_scores_are_minus_infinity_or_large():
    x = leaf([[1.0, -INF, 2.0], [-INF, -INF, -INF], [-1e8, -1e8, -1e8 - 1]])
    y = F.log_softmax(x)
    assert y.numpy()[0, 1] == -INF
    np.testing.assert_array_equal(y.numpy()[1], -INF)
    np.testing.assert_allclose(y.numpy()[2], scipy.special.log_softmax([0.0, 0, -1]), rtol=1e-15)
    g = grad(y[0, 0], x).numpy()
    np.testing.assert_allclose(g[0], [1, 0, 0] - scipy.special.softmax([1, -INF, 2]), rtol=1e-13)
    np.testing.assert_array_equal(g[1], 0)
