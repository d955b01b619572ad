"""Norms and deviations of nothing, sorting of ties and NaN, reductions of a number."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import host


def leaf(values, device="cpu", dtype=np.float64):
    return Tensor(np.asarray(values, dtype), device=device, requires_grad=True)


# --- Norms and deviations --------------------------------------------------------------------------


def test_the_norm_of_the_zero_vector_has_gradient_zero(device):
    x = leaf([[0.0, 0.0], [3.0, 4.0]], device)
    out = mg.norm(x, axis=1)
    np.testing.assert_allclose(host(out), [0, 5], rtol=1e-14)
    first = mg.grad(out.sum(), x, create_graph=True)
    np.testing.assert_array_equal(host(first)[0], 0)
    second = mg.grad(first.sum(), x)
    np.testing.assert_array_equal(host(second)[0], 0)
    assert np.isfinite(host(second)).all()


def test_what_does_not_vary_has_a_deviation_of_zero_with_gradient_zero(device):
    x = leaf([[2.0, 2, 2], [1, 2, 3]], device)
    out = mg.std(x, axis=1)
    np.testing.assert_allclose(host(out), [0, math.sqrt(2 / 3)], rtol=1e-14)
    first = mg.grad(out.sum(), x, create_graph=True)
    np.testing.assert_allclose(host(first), [[0, 0, 0], np.array([-1, 0, 1]) / math.sqrt(6)], rtol=1e-14, atol=1e-16)
    np.testing.assert_array_equal(host(mg.grad((first * first).sum(), x))[0], 0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's own, and its division by 0
@pytest.mark.parametrize(("array", "correction", "var", "slopes"), [
    ([3.0], 1, math.nan, [math.nan]), ([3.0, 5], 2, math.inf, [-math.inf, math.inf]),
    ([3.0, 5], 3, math.inf, [-math.inf, math.inf]), ([], 1, math.nan, []),
], ids=["one", "as many as the correction", "fewer than the correction", "none"])
def test_no_degree_of_freedom_divides_by_zero(array, correction, var, slopes, device):
    x = leaf(array, device)
    out = mg.var(x, correction=correction)
    np.testing.assert_array_equal(host(out), var)
    np.testing.assert_array_equal(host(mg.grad(out, x)), slopes)
    np.testing.assert_array_equal(host(mg.std(x, correction=correction)), var)


# name: the slope of the reduction of a number, and its second derivative
OF_A_NUMBER = {"sum": 1, "mean": 1, "max": 1, "min": 1, "logsumexp": 1, "norm": 1, "var": 0,
               "std": 0}


@pytest.mark.parametrize("name", OF_A_NUMBER)
@pytest.mark.parametrize("dtype", [np.float64, np.float16])
@pytest.mark.parametrize("axis", [0, -1, None, ()])
def test_a_number_may_be_reduced_over_its_axis_0(name, axis, dtype, device):
    """As in PyTorch, and by some functions in NumPy; nothing is left of it, also with keepdims."""
    slope = OF_A_NUMBER[name]
    for keepdims in (False, True):
        x = leaf(2.0, device, dtype)
        out = getattr(mg, name)(x, axis=axis, keepdims=keepdims)
        assert (out.shape, out.item()) == ((), 2 * slope)
        assert mg.grad(out, x, retain_graph=True).item() == slope
        first = mg.grad(out, x, create_graph=True)
        assert mg.grad(first * x, x).item() == slope


def test_what_has_no_slope_may_reduce_a_number_too(device):
    x = leaf(2.0, device)
    for axis in (0, -1, None):
        for keepdims in (False, True):
            assert mg.argmax(x, axis, keepdims).tolist() == mg.argmin(x, axis, keepdims).tolist() == 0
            assert (x > 1).any(axis, keepdims).item()
            assert (x > 1).all(axis, keepdims).item()


@pytest.mark.parametrize("name", ["sum", "mean", "max", "var", "logsumexp", "argmax", "norm", "cumsum", "sort",
                                  "argsort"])
def test_another_axis_of_a_number_is_an_error(name, device):
    with pytest.raises((IndexError, ValueError), match=rf"{name}\b.*axis 1"):
        getattr(mg, name)(leaf(2.0, device), axis=1)


# --- Sorting ---------------------------------------------------------------------------------------


def test_equal_elements_keep_their_order_and_each_its_own_gradient(device):
    x = leaf([[2.0, 1, 2, 1, 2], [0, 0, 0, 0, 0]], device)
    np.testing.assert_array_equal(host(mg.argsort(x)), [[1, 3, 0, 2, 4], [0, 1, 2, 3, 4]])
    weights = leaf(np.arange(10.0).reshape(2, 5), device)
    gradient = mg.grad(mg.sort(x), x, weights)
    np.testing.assert_array_equal(host(gradient), [[2, 0, 3, 1, 4], [5, 6, 7, 8, 9]])


def test_nan_counts_as_the_largest(device):
    x = leaf([3.0, math.nan, 1, 2], device)
    np.testing.assert_array_equal(host(mg.sort(x)), [1, 2, 3, math.nan])
