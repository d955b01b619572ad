"""The squared error in closed form. Derivatives: see test_every_functional.py."""

import numpy as np
import pytest

from minigrad import Tensor, grad
from minigrad import functional as F

RNG = np.random.default_rng(61)
X, Y = RNG.normal(size=(3, 4)) * 2, RNG.normal(size=(3, 4))
T = np.array([[1.0, 0.0, 0.3, 1.0], [0.0, 0.0, 1.0, 0.8], [0.5, 1.0, 0.0, 1.0]])


def test_closed_form():
    values, slopes = (X - Y) ** 2, 2 * (X - Y)
    for reduction, value, slope in (("none", values, slopes), ("sum", values.sum(), slopes),
                                    ("mean", values.mean(), slopes / X.size)):
        x = Tensor(X, requires_grad=True)
        out = F.mse_loss(x, Y, reduction=reduction)
        np.testing.assert_allclose(out.numpy(), value, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(grad(out.sum(), x).numpy(), slope, rtol=1e-11, atol=1e-14)
    np.testing.assert_array_equal(F.mse_loss(Tensor(X), Y).numpy(), F.mse_loss(Tensor(X), Y, reduction="mean").numpy())


@pytest.mark.parametrize("target", [T.tolist(), T, Tensor(T), T > 0.5])
def test_targets_in_every_form(target, device):
    """What is no tensor is a constant in the input's dtype, sent to where the input is."""
    x = Tensor(X, dtype=np.float32, device=device, requires_grad=True)
    target = target.to(device) if isinstance(target, Tensor) else target
    values = np.asarray(target.numpy() if isinstance(target, Tensor) else target, np.float32)
    out = F.mse_loss(x, target)
    assert out.dtype == (np.float64 if isinstance(target, Tensor) else np.float32)
    assert out.device == device
    assert out.item() == pytest.approx(((X - values) ** 2).mean(), rel=1e-5)
