"""The exponential and the maximum that kernels are made of."""

import math

import numpy as np
import pytest

numba = pytest.importorskip("numba", reason="the extra jit is not installed")

from minigrad.kernels.compiled.math import exp, greatest  # noqa: E402 - they need numba


@numba.njit
def exp_of_all(x, out):
    for i in range(x.size):
        out[i] = exp(x[i])


@numba.njit
def greatest_of_all(x):
    return greatest(x)


def exponentials(x):
    out = np.empty_like(x)
    exp_of_all(x, out)
    return out


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.float32, -87, 88.7), (np.float64, -708, 709.7)])
def test_exp_is_within_an_ulp(dtype, low, high):
    x = np.concatenate([np.linspace(low, high, 400_001), np.linspace(-1e-3, 1e-3, 1001)]).astype(dtype)
    exact = np.exp(x.astype(np.longdouble))
    error = np.abs(exponentials(x) - exact) / np.spacing(exact.astype(dtype))
    assert error.max() < 1.01


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.float32, -105, -87), (np.float64, -746, -708)])
def test_exp_of_the_smallest_numbers(dtype, low, high):
    x = np.linspace(low, high, 20_001).astype(dtype)
    exact = np.exp(x.astype(np.longdouble))
    assert np.abs(exponentials(x) - exact).max() <= 1.01 * np.finfo(dtype).smallest_subnormal


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exp_at_the_ends(dtype):
    x = np.array([math.nan, math.inf, -math.inf, 0, -0.0, 1e30, -1e30, 89, 710, -104.1, -746.1], dtype)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(exponentials(x), np.exp(x), rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_greatest(dtype):
    for values in ([1.0], [-1.0], [-3.0, -1.0, -2.0], [0.0, -0.0], [-math.inf] * 3, [-math.inf, -1e30], [math.inf, 1.0],
                   [1e-45, -1e-45], [5.0, -math.inf, 4.0]):
        x = np.array(values, dtype)
        assert greatest_of_all(x) == x.max()
    for size in range(1, 70):
        x = np.random.default_rng(size).standard_normal(size).astype(dtype)
        assert greatest_of_all(x) == x.max()
        assert greatest_of_all(-np.abs(x)) == -np.abs(x).min()
