"""float16 on the host: sums and products keep the accuracy of float32 until they are rounded, once."""

import numpy as np
import pytest

from minigrad import Tensor, einsum, matmul
from minigrad import functional as F
from minigrad.kernels.host.sums import column_sums
from minigrad.precision.half import product, total

ROUNDING = 2.0**-11  # of float16, relative: half a unit in the last place


def draw(*shape, seed=0):
    """Numbers in [0, 1): all sums are large beside their terms, so that a short accumulator shows."""
    return np.random.default_rng(seed).random(shape).astype(np.float16)


def close(actual, exact, rounding=ROUNDING):
    assert actual.dtype == np.float16
    np.testing.assert_allclose(actual.astype(np.float64), exact, rtol=1.01 * rounding, atol=0)


def test_a_product_of_4096_terms():
    x, y = draw(3, 4096), draw(4096, 5, seed=1)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    close(product(x, y), exact)
    close(matmul(Tensor(x), Tensor(y)).data, exact)
    close(F.linear(Tensor(x), Tensor(y.T.copy())).data, exact)
    close(einsum("ij,jk->ik", Tensor(x), Tensor(y)).data, exact)


def test_a_product_is_that_of_float32_rounded_once():
    x, y = draw(2, 7, 33), draw(2, 33, 4, seed=1)
    exact = np.matmul(x.astype(np.float32), y.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(product(x, y), exact)
    out = np.zeros((2, 4, 7), np.float16)
    assert product(x, y, out.mT).base is out  # a view, filled in place
    np.testing.assert_array_equal(out.mT, exact)


def test_the_gradient_of_one_matrix_for_all_rows_is_rounded_once():
    x, y, g = draw(2, 2048, 7), Tensor(draw(7, 5, seed=1), requires_grad=True), draw(2, 2048, 5, seed=2)
    matmul(Tensor(x), y).backward(Tensor(g))
    close(y.grad.data, np.einsum("nik,nij->kj", x.astype(np.float64), g.astype(np.float64)))


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_a_sum_of_4096_terms(axis, keepdims):
    x = draw(4096, 7)
    exact = x.astype(np.float64).sum(axis=axis, keepdims=keepdims)
    close(np.asarray(total(x, axis, keepdims)), exact)
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
