"""Activations by PyTorch's formulas, far from 0 and at their kinks, to third order."""

import math

import numpy as np
import pytest
import scipy.special

from minigrad import Tensor, grad
from minigrad import functional as F

FAR = np.array([-1e3, -100.0, -20.5, -3.5, -0.3, 0.2, 2.5, 7.0, 20.5, 100.0, 1e3])


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def negative_part(x):
    return np.expm1(np.minimum(x, 0))


SCALE, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717

FORMULAS = {
    "softplus": (F.softplus, softplus),
    "softplus, sharper": (lambda x: F.softplus(x, beta=3, threshold=50), lambda x: softplus(3 * x) / 3),
    "softplus of negative beta": (lambda x: F.softplus(x, beta=-1), lambda x: x - softplus(x)),
    "logsigmoid": (F.logsigmoid, lambda x: -softplus(-x)),
    "silu": (F.silu, lambda x: x * np.exp(-softplus(-x))),
    "mish": (F.mish, lambda x: x * np.tanh(softplus(x))),
    "elu of alpha": (lambda x: F.elu(x, alpha=0.5), lambda x: np.maximum(x, 0) + 0.5 * negative_part(x)),
    "selu": (F.selu, lambda x: SCALE * (np.maximum(x, 0) + ALPHA * negative_part(x))),
    "celu": (lambda x: F.celu(x, alpha=2), lambda x: np.maximum(x, 0) + 2 * negative_part(x / 2)),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.3), lambda x: np.where(x > 0, x, 0.3 * x)),
    "hardtanh": (lambda x: F.hardtanh(x, -2, 3), lambda x: np.clip(x, -2, 3)),
    "relu6": (F.relu6, lambda x: np.clip(x, 0, 6)),
    "hardsigmoid": (F.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "softsign": (F.softsign, lambda x: x / (1 + np.abs(x))),
}


@pytest.mark.parametrize(("function", "formula"), FORMULAS.values(), ids=FORMULAS)
def test_values_and_slopes_of_formulas(function, formula, device):
    """All derivatives are finite, and nothing warns: the branch that is not taken does not overflow."""
    out = function(Tensor(FAR, device=device))
    np.testing.assert_allclose(out.numpy(), formula(FAR), rtol=1e-8, atol=1e-14)  # at its threshold softplus drops e⁻²⁰
    rise = (formula(FAR + 1e-6) - formula(FAR - 1e-6)) / 2e-6
    for dtype in (np.float16, np.float32, np.float64):
        x = Tensor(FAR, dtype=dtype, device=device, requires_grad=True)
        out = function(x)
        for order in range(3):
            assert out.dtype == dtype
            assert np.isfinite(out.numpy()).all()
            if order == 1:
                np.testing.assert_allclose(out.numpy(), rise, atol=2e-2 if dtype == np.float16 else 1e-6)
            if not out.requires_grad:
                break
            out = grad(out.sum(), x, create_graph=True)


@pytest.mark.filterwarnings("ignore:invalid value encountered in logaddexp:RuntimeWarning")  # so does NumPy's
def test_not_a_number_stays_so():
    for function, _ in FORMULAS.values():
        assert np.isnan(function(Tensor([math.nan])).numpy()).all()


# What PyTorch gives at the kinks, and the order up to which the function is smooth there.
KINKS = {
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.3), 0, [0, 0.3, 0]),
    "elu": (lambda x: F.elu(x, 0.5), 0, [0, 0.5, 0.5, 0.5]),
    "celu": (lambda x: F.celu(x, 0.5), 0, [0, 1, 2, 4]),
    "hardtanh below": (F.hardtanh, -1, [-1, 0]),
    "hardtanh above": (F.hardtanh, 1, [1, 0]),
    "softsign": (F.softsign, 0, [0, 1, 0]),
    "softplus above its threshold": (F.softplus, 21, [21, 1, 0]),
}


@pytest.mark.parametrize(("function", "place", "expected"), KINKS.values(), ids=KINKS)
def test_derivatives_at_the_kinks(function, place, expected):
    x = Tensor(np.array(float(place)), requires_grad=True)
    out, found = function(x), []
    for order in range(len(expected)):
        if order:
            out = grad(out, x, create_graph=True) if out.requires_grad else Tensor(np.array(0.0))
        found.append(out.item())
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_small_values_keep_their_digits():
    """Where ``log(1 + eˣ)`` or ``eˣ - 1`` written out would round to 0 or lose half of their digits."""
    x = Tensor(np.array([-40.0]), requires_grad=True)
    assert F.softplus(x).item() == pytest.approx(math.exp(-40), rel=1e-14)
    assert grad(F.softplus(x), x).item() == pytest.approx(math.exp(-40), rel=1e-14)
    assert grad(F.elu(x), x).item() == pytest.approx(math.exp(-40), rel=1e-14)
    assert F.elu(Tensor(np.array([-1e-12]))).item() == pytest.approx(-1e-12, rel=1e-11)
    assert F.logsigmoid(-x).item() == pytest.approx(-math.exp(-40), rel=1e-14)


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
