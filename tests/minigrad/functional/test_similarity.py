"""cosine_similarity, normalize and rms_norm in closed form, of vectors of zeros too, and the mistakes they name."""

import math

import numpy as np
import pytest

from minigrad import Tensor, grad
from minigrad import functional as F

RNG = np.random.default_rng(62)
X, Y = RNG.normal(size=(3, 4)) * 2, RNG.normal(size=(3, 4))


def leaf(values, dtype=np.float64):
    return Tensor(np.array(values, dtype), requires_grad=True)


def test_cosine_similarity_in_closed_form():
    for axis in (0, 1, -1):
        expected = (X * Y).sum(axis) / np.linalg.norm(X, axis=axis) / np.linalg.norm(Y, axis=axis)
        np.testing.assert_allclose(F.cosine_similarity(Tensor(X), Tensor(Y), dim=axis).numpy(), expected, rtol=1e-13)
    every_pair = F.cosine_similarity(Tensor(X[:, None]), Tensor(Y), axis=-1)
    np.testing.assert_allclose(np.diag(every_pair.numpy()), F.cosine_similarity(Tensor(X), Tensor(Y)).numpy(),
                               rtol=1e-13)


def test_a_vector_of_zeros_is_like_no_other():
    """Its similarity is 0; the gradients are finite to second order."""
    x, y = leaf(np.zeros((1, 3))), leaf([[1.0, 2.0, 2.0]])
    out = F.cosine_similarity(x, y, eps=0.1)
    assert out.item() == 0
    first = grad(out.sum(), x, create_graph=True)
    np.testing.assert_allclose(first.numpy(), [[1 / 0.3, 2 / 0.3, 2 / 0.3]], rtol=1e-13)
    assert np.isfinite(grad((first**2).sum(), x, allow_unused=True).numpy()).all()


@pytest.mark.parametrize("p", [1, 2, 3, 0.5, math.inf])
def test_normalize_in_closed_form(p):
    norms = np.abs(X).max(1) if p == math.inf else (np.abs(X) ** p).sum(1) ** (1 / p)
    np.testing.assert_allclose(F.normalize(Tensor(X), p).numpy(), X / norms[:, None], rtol=1e-13)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_normalize_leaves_zeros(p):
    x = leaf([[0.0, 0.0], [3.0, 4.0]])
    out = F.normalize(x, p, eps=0.5)
    np.testing.assert_array_equal(out.numpy()[0], 0)
    first = grad((out * Tensor([[1.0, 2.0], [0.0, 0.0]])).sum(), x, create_graph=True)
    np.testing.assert_allclose(first.numpy()[0], [2, 4], rtol=1e-14)
    assert np.isfinite(grad((first**2).sum(), x).numpy()).all()


def test_rms_norm_in_closed_form():
    weight = np.linspace(0.5, 2, 4)
    expected = X / np.sqrt((X**2).mean(-1, keepdims=True) + 0.1) * weight
    np.testing.assert_allclose(F.rms_norm(Tensor(X), Tensor(weight), 0.1).numpy(), expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rms_norm_takes_its_eps_from_the_dtype(dtype):
    x = np.full((1, 4), 0.01, dtype)
    expected = 0.01 / math.sqrt(1e-4 + np.finfo(dtype).eps)
    np.testing.assert_allclose(F.rms_norm(Tensor(x)).numpy(), expected, rtol=3e-3 if dtype == np.float16 else 1e-6)
    assert F.rms_norm(Tensor(x)).dtype == dtype


def test_rms_norm_gradients_are_orthogonal_to_scalings():
    """x and a·x give the same output (but for eps), so along x nothing changes."""
    x = leaf(X)
    g = grad((F.rms_norm(x, eps=0.0) * Tensor(Y)).sum(), x).numpy()
    np.testing.assert_allclose((g * X).sum(axis=-1), 0, atol=1e-13)


def test_rms_norm_of_large_float16_rows():
    x = np.random.default_rng(7).normal(0.0, 30.0, size=(2, 300)).astype(np.float16)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(F.rms_norm(Tensor(x)).numpy(), wide / np.sqrt((wide**2).mean(-1, keepdims=True)),
                               rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize(("call", "error", "said"), [
    (lambda x: F.cosine_similarity(x, np.ones((2, 4))), ValueError,
     r"cosine_similarity: x1 and x2 must broadcast, got \(2, 3\) and \(2, 4\)"),
    (lambda x: F.cosine_similarity(x, x, axis=2), IndexError, r"cosine_similarity: axis 2 is out of range.*\(2, 3\)"),
    (lambda x: F.cosine_similarity(x[0], x[0]), IndexError, r"cosine_similarity: axis 1 is out of range.*\(3,\)"),
    (lambda x: F.cosine_similarity(x, x, axis=1, dim=1), TypeError, "cosine_similarity: dim is another name for axis"),
    (lambda x: F.normalize(x, axis=-3), IndexError, r"normalize: axis -3 is out of range for shape \(2, 3\)"),
    (lambda x: F.rms_norm(x, np.ones(2)), ValueError, r"rms_norm: weight\.shape == \(input\.shape\[-1\],\), got"),
])
def test_mistakes(call, error, said):
    with pytest.raises(error, match=f"^{said}"):
        call(Tensor(np.ones((2, 3)), requires_grad=True))


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_cosine_similarity_of_very_long_and_very_short_vectors(size):
    """Their squares are beyond float32; the angle is not."""
    x1, x2 = np.array([[3.0, 4.0]], np.float32), np.array([[4.0, 3.0]], np.float32)
    found = F.cosine_similarity(Tensor(x1 * np.float32(size)), Tensor(x2 * np.float32(size)), eps=0.0)
    np.testing.assert_allclose(found.numpy(), [0.96], rtol=1e-6)
    assert F.cosine_similarity(Tensor(np.zeros((2, 0))), Tensor(np.zeros((2, 0)))).tolist() == [0.0, 0.0]
