"""Activations by PyTorch's formulas, far from 0, to third order."""

import contextlib
import math

import numpy as np
import pytest
import scipy.special

from minigrad import Tensor, erf, erfc, grad, ones_like, stack
from minigrad import functional as F
from minigrad.kernels import only_definitions

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
    np.testing.assert_allclose(F.gelu(Tensor(x)).numpy(), x * scipy.special.ndtr(x), rtol=1e-13)
    tanh = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(F.gelu(Tensor(x), approximate="tanh").numpy(), tanh, rtol=1e-13)


def test_gelu_has_its_digits_far_below_zero(form):
    far = np.linspace(-12.5, 12.5, 2001).astype(np.float32)
    x, exact = Tensor(far, requires_grad=True), far.astype(np.float64)
    below, density = scipy.special.ndtr(exact), np.exp(-exact * exact / 2) / math.sqrt(2 * math.pi)
    out = F.gelu(x)
    np.testing.assert_allclose(out.numpy(), exact * below, rtol=1e-6)
    for create_graph in (True, False):
        slope = grad(out.sum(), x, create_graph=create_graph).numpy()
        np.testing.assert_allclose(slope, below + exact * density, rtol=1e-6, atol=1e-7 * (np.abs(far) < 1).max())


@pytest.mark.parametrize(("function", "sign"), [(erf, 2), (erfc, -2)])
def test_the_slopes_of_the_error_functions_have_their_digits_far_out(function, sign):
    x = Tensor(np.linspace(-9, 9, 2001, dtype=np.float32), requires_grad=True)
    expected = sign / math.sqrt(math.pi) * np.exp(-x.numpy().astype(np.float64) ** 2)
    for create_graph in (False, True):
        slope = grad(function(x).sum(), x, create_graph=create_graph).numpy()
        np.testing.assert_allclose(slope, expected, rtol=1e-6)


ACTIVATIONS = {"relu": F.relu, "sigmoid": F.sigmoid, "tanh": F.tanh, "silu": F.silu, "gelu": F.gelu,
               "tanh GELU": lambda x: F.gelu(x, approximate="tanh")}
LOSSES = {
    "cross_entropy": lambda x: F.cross_entropy(beside_zero(x), np.zeros(len(x), int), reduction="none"),
    "of another class": lambda x: F.cross_entropy(beside_zero(x), np.ones(len(x), int), reduction="none"),
    "smoothed": lambda x: F.cross_entropy(beside_zero(x), np.ones(len(x), int), reduction="none", label_smoothing=0.1),
    "nll_loss": lambda x: F.nll_loss(F.log_softmax(beside_zero(x)), np.ones(len(x), int), reduction="none"),
    "mse_loss": lambda x: F.mse_loss(x / 4, Tensor(np.zeros(x.shape, x.dtype)), reduction="none"),
    "softmax": lambda x: F.softmax(beside_zero(x))[:, 0],
}


def beside_zero(x):
    return stack([x, x * 0], axis=-1)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("function", [*ACTIVATIONS.values(), *LOSSES.values()], ids=[*ACTIVATIONS, *LOSSES])
def test_all_magnitudes_have_finite_derivatives(function, dtype, form):
    """The gradient and the second one, also by the definition and where they are recorded, are those of float64."""
    kinds = np.finfo(dtype)
    sizes = np.geomspace(float(kinds.tiny), float(kinds.max) * 0.999, 100).astype(dtype)
    sizes = np.concatenate([sizes, np.geomspace(0.01, 1e4, 100).astype(dtype), [kinds.max]])
    values, tolerance = np.concatenate([-sizes, [0], sizes]), {2: 0.02, 4: 1e-5, 8: 1e-12}[kinds.dtype.itemsize]
    found = []
    for kind, definitions in ((np.float64, False), (dtype, False), (dtype, True)):
        with only_definitions() if definitions else contextlib.nullcontext():
            x = Tensor(values.astype(kind), requires_grad=True)
            out = function(x)
            ones = ones_like(out)
            plain, recorded = grad(out, x, ones, retain_graph=True), grad(out, x, ones, create_graph=True)
            second = grad(recorded, x, ones_like(x)).numpy() if recorded.requires_grad else np.zeros(x.shape)
            found.append([plain.numpy(), recorded.numpy(), second])
    for kind in found:
        for one, exact in zip(kind, found[0], strict=True):
            assert np.isfinite(one).all()
            np.testing.assert_allclose(one, exact, rtol=tolerance, atol=tolerance)
