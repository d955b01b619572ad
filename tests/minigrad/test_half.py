"""float16 on the host: sums and products keep the accuracy of float32 until they are rounded, once."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, einsum, matmul
from minigrad import functional as F
from minigrad.device.sums import sum_over
from minigrad.kernels.host.sums import column_sums
from minigrad.precision.half import product

from tests.minigrad.ops.row import host


def draw(*shape, seed=0):
    """Numbers in [0, 1): all sums are large beside their terms, so that a short accumulator shows."""
    return np.random.default_rng(seed).random(shape).astype(np.float16)


def close(actual, exact):
    """It is the exact result, rounded to float16 once: by half a unit in the last place."""
    assert actual.dtype == np.float16
    np.testing.assert_allclose(actual.astype(np.float64), exact, rtol=1.01 * 2.0**-11, atol=0)


def test_a_product_of_4096_terms():
    x, y = draw(3, 4096), draw(4096, 5, seed=1)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    x, y = Tensor(x), Tensor(y)
    for out in (matmul(x, y), F.linear(x, y.T), einsum("ij,jk->ik", x, y)):
        close(out.data, exact)
    out = np.zeros((5, 3), np.float16)
    assert product(x.data, y.data, out.mT).base is out  # a view, filled in place
    close(out.mT, exact)


def test_the_gradient_of_one_matrix_for_all_rows_is_rounded_once():
    x, y, g = draw(2, 2048, 7), Tensor(draw(7, 5, seed=1), requires_grad=True), draw(2, 2048, 5, seed=2)
    matmul(Tensor(x), y).backward(Tensor(g))
    close(y.grad.data, np.einsum("nik,nij->kj", x.astype(np.float64), g.astype(np.float64)))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_a_sum_of_4096_terms(axis):
    x = draw(4096, 7)
    for keepdims in (False, True):
        exact = x.astype(np.float64).sum(axis=axis, keepdims=keepdims)
        close(np.asarray(sum_over(x, axis, keepdims)), exact)
        close(Tensor(x).sum(axis, keepdims).data, exact)


def test_gradients_that_are_sums_over_rows():
    """Of a bias, and of what was broadcast: in float16 along the first axis NumPy loses one part in a hundred."""
    g, exact = draw(4096, 7), draw(4096, 7).astype(np.float64).sum(axis=0)
    bias, shift = (Tensor(np.zeros(7, np.float16), requires_grad=True) for _ in range(2))
    out = F.linear(Tensor(np.zeros((4096, 2), np.float16)), Tensor(np.zeros((7, 2), np.float16)), bias) + shift
    out.backward(Tensor(g))
    close(bias.grad.data, exact)
    close(shift.grad.data, exact)
    close(column_sums(g), exact)


def test_softmax_is_that_of_float32_rounded_once():
    x = (np.random.default_rng(0).standard_normal((5, 700)) * 8).astype(np.float16)
    wide = Tensor(x.astype(np.float32))
    for axis in (0, -1):
        for function in (F.softmax, F.log_softmax):
            out = function(Tensor(x), axis).data
            assert out.dtype == np.float16
            np.testing.assert_array_equal(out, function(wide, axis).data.astype(np.float16))


# --- float16 by the many ---------------------------------------------------------------------------


MANY = 1 << 17  # above 65504, the largest float16; its reciprocal is one, too


def leaf(values, device="cpu"):
    return Tensor(np.asarray(values, np.float16), device=device, requires_grad=True)


def test_the_mean_and_the_variance_of_many(device):
    x = leaf(np.tile([1.0, 3.0], MANY // 2), device)
    for reduction, value, slopes in ((mg.mean, 2, [1, 1]), (mg.var, 1, [-2, 2]), (mg.std, 1, [-1, 1])):
        out = reduction(x)
        assert (out.dtype, out.item()) == (np.float16, value)
        gradient = host(mg.grad(out * 1024, x))
        np.testing.assert_array_equal(gradient, np.tile(np.array(slopes) * (1024 / MANY), MANY // 2))


def test_what_is_shared_by_many(device):
    x = leaf(np.ones(MANY), device)
    np.testing.assert_array_equal(host(mg.grad(mg.max(x) * 1024, x)), np.float16(1024 / MANY))
    assert mg.logsumexp(x).item() == np.float16(1 + math.log(MANY))


def test_a_norm_whose_squares_are_too_large(device):
    x = leaf([300.0, 400.0], device)
    out = mg.norm(x)
    assert (out.dtype, out.item()) == (np.float16, 500)
    np.testing.assert_array_equal(host(mg.grad(out, x)), np.array([0.6, 0.8], np.float16))
