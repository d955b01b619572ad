"""layer_norm, rms_norm, normalize and cosine_similarity in closed form, and of vectors of equals or of zeros."""

import math

import numpy as np
import pytest

from minigrad import Tensor, grad
from minigrad import functional as F

RNG = np.random.default_rng(62)
X, Y = RNG.normal(size=(3, 4)) * 2, RNG.normal(size=(3, 4))


def leaf(values, dtype=np.float64):
    return Tensor(np.array(values, dtype), requires_grad=True)


def test_layer_norm_and_rms_norm_in_closed_form(form):
    weight, bias = np.linspace(0.5, 2, 4), np.linspace(-1, 1, 4)
    expected = (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(F.layer_norm(Tensor(X), Tensor(weight), Tensor(bias)).numpy(), expected, rtol=1e-12)
    expected = X / np.sqrt((X**2).mean(-1, keepdims=True) + 0.1) * weight
    np.testing.assert_allclose(F.rms_norm(Tensor(X), Tensor(weight), 0.1).numpy(), expected, rtol=1e-13)


def test_layer_norm_of_a_constant_row_is_the_bias_and_its_gradient_finite(form):
    x = leaf(np.full((2, 4), 7.0))
    y = F.layer_norm(x, leaf(np.ones(4)), leaf([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(y.numpy(), [[1, 2, 3, 4]] * 2)
    g = grad((y**2).sum(), x).numpy()
    np.testing.assert_allclose(g, 2 * (np.array([[1, 2, 3, 4]] * 2) - 2.5) / math.sqrt(1e-5), rtol=1e-12)


def test_large_float16_rows(form):
    """The squares of 300 elements sum to more than float16 holds."""
    x = RNG.normal(0.0, 30.0, size=(2, 300)).astype(np.float16)
    exact = x.astype(np.float64)
    centered = exact - exact.mean(-1, keepdims=True)
    y = F.layer_norm(Tensor(x)).numpy()
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, centered / exact.std(-1, keepdims=True), atol=1e-2)
    np.testing.assert_allclose(F.rms_norm(Tensor(x)).numpy(), exact / np.sqrt((exact**2).mean(-1, keepdims=True)),
                               rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rms_norm_takes_its_eps_from_the_dtype(dtype):
    x = np.full((1, 4), 0.01, dtype)
    expected = 0.01 / math.sqrt(1e-4 + np.finfo(dtype).eps)
    np.testing.assert_allclose(F.rms_norm(Tensor(x)).numpy(), expected, rtol=3e-3 if dtype == np.float16 else 1e-6)


@pytest.mark.parametrize("p", [1, 2, 3, 0.5, math.inf])
def test_normalize(p):
    """Vectors of zeros stay; what is near them is divided by eps."""
    norms = np.abs(X).max(1) if p == math.inf else (np.abs(X) ** p).sum(1) ** (1 / p)
    np.testing.assert_allclose(F.normalize(Tensor(X), p).numpy(), X / norms[:, None], rtol=1e-13)
    if p not in (1, 2, 3):
        return
    x = leaf([[0.0, 0.0], [3.0, 4.0]])
    out = F.normalize(x, p, eps=0.5)
    np.testing.assert_array_equal(out.numpy()[0], 0)
    first = grad((out * Tensor([[1.0, 2.0], [0.0, 0.0]])).sum(), x, create_graph=True)
    np.testing.assert_allclose(first.numpy()[0], [2, 4], rtol=1e-14)
    assert np.isfinite(grad((first**2).sum(), x).numpy()).all()


def test_cosine_similarity_in_closed_form():
    for axis in (0, 1, -1):
        expected = (X * Y).sum(axis) / np.linalg.norm(X, axis=axis) / np.linalg.norm(Y, axis=axis)
        np.testing.assert_allclose(F.cosine_similarity(Tensor(X), Tensor(Y), axis).numpy(), expected, rtol=1e-13)


def test_a_vector_of_zeros_is_like_no_other():
    """Its similarity is 0; the gradients are finite to second order."""
    x, y = leaf(np.zeros((1, 3))), leaf([[1.0, 2.0, 2.0]])
    out = F.cosine_similarity(x, y, eps=0.1)
    assert out.item() == 0
    first = grad(out.sum(), x, create_graph=True)
    np.testing.assert_allclose(first.numpy(), [[1 / 0.3, 2 / 0.3, 2 / 0.3]], rtol=1e-13)
    assert np.isfinite(grad((first**2).sum(), x, allow_unused=True).numpy()).all()
    assert F.cosine_similarity(Tensor(np.zeros((2, 0))), Tensor(np.zeros((2, 0)))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_cosine_similarity_of_very_long_and_very_short_vectors(size):
    """Their squares are beyond float32; the angle is not."""
    x1, x2 = np.array([[3.0, 4.0]], np.float32), np.array([[4.0, 3.0]], np.float32)
    found = F.cosine_similarity(Tensor(x1 * np.float32(size)), Tensor(x2 * np.float32(size)), eps=0.0)
    np.testing.assert_allclose(found.numpy(), [0.96], rtol=1e-6)
