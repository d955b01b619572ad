"""Activations by PyTorch's formulas, far from 0, to third order."""

import math

import numpy as np
import scipy.special

from minigrad import Tensor, grad
from minigrad import functional as F

FAR = np.array([-1e3, -100.0, -20.5, -3.5, -0.3, 0.2, 2.5, 7.0, 20.5, 100.0, 1e3])


def test_values_and_slopes_of_silu(device):
    """All derivatives are finite, and nothing warns."""
    formula = FAR * scipy.special.expit(FAR)
    np.testing.assert_allclose(F.silu(Tensor(FAR, device=device)).numpy(), formula, rtol=1e-8, atol=1e-14)
    rise = scipy.special.expit(FAR) * (1 + FAR * scipy.special.expit(-FAR))
    for dtype in (np.float16, np.float32, np.float64):
        out = x = Tensor(FAR, dtype=dtype, device=device, requires_grad=True)
        for order in range(3):
            out = grad(out.sum(), x, create_graph=True) if order else F.silu(x)
            assert out.dtype == dtype
            assert np.isfinite(out.numpy()).all()
            if order == 1:
                np.testing.assert_allclose(out.numpy(), rise, atol=2e-2 if dtype == np.float16 else 1e-6)


def test_not_a_number_stays_so():
    assert np.isnan(F.silu(Tensor([math.nan])).numpy()).all()


def test_gelu(form):
    x = np.linspace(-4, 4, 33)
    np.testing.assert_allclose(F.gelu(Tensor(x)).numpy(), x * 0.5 * (1 + scipy.special.erf(x / np.sqrt(2))), rtol=1e-13)
    tanh = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(F.gelu(Tensor(x), approximate="tanh").numpy(), tanh, rtol=1e-13)


def test_gelu_far_from_zero_has_finite_gradients(form):
    x = Tensor(np.array([-1e4, -50.0, 0.0, 50.0, 1e4]), requires_grad=True)
    for approximate in ("none", "tanh"):
        with np.errstate(over="ignore"):
            g = grad(F.gelu(x, approximate).sum(), x)
        np.testing.assert_allclose(g.numpy(), [0, 0, 0.5, 1, 1], atol=1e-12)
