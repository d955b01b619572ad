"""Rotary positions: complex numbers turned, in both layouts, on every device and in every dtype."""

import numpy as np
import pytest

from minigrad import Tensor

from transformer import RotaryPositions
from transformer.model.rotary import LAYOUTS

RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 3, 4, 6))  # (B, H, T, d)


def by_complex_numbers(x, positions, base, layout, features):
    """The pairs as complex numbers times ``exp(i·p·base^(-2j/features))`` (equation 16 of the paper)."""
    n = features // 2
    first, second = (slice(n), slice(n, 2 * n)) if layout == "halves" else (slice(0, 2 * n, 2), slice(1, 2 * n, 2))
    turned = (x[..., first] + 1j * x[..., second]) * np.exp(
        1j * positions[:, None] / base ** (2 * np.arange(n) / features))
    out = x.copy()
    out[..., first], out[..., second] = turned.real, turned.imag
    return out


@pytest.mark.parametrize(("dtype", "position", "base", "tolerance"), [
    (np.float64, 7, 100.0, 1e-14),
    (np.float32, 1_000_003, 10000.0, 3e-7), (np.float16, 1_000_003, 10000.0, 2.0 ** -10)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("features", [None, 4])
def test_pairs_turn_like_complex_numbers(layout, features, dtype, position, base, tolerance, device):
    """In float32 the angle of position 1,000,003 itself would be wrong by a 16th."""
    x = X.astype(dtype)
    expected = by_complex_numbers(x.astype(np.float64), position + np.arange(4), base, layout, features or 6)
    found = RotaryPositions(base, layout, features)(Tensor(x, device=device), position)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=tolerance * abs(expected).max())


def test_operands_stay_as_they_are():
    x = Tensor(X.swapaxes(1, 2), requires_grad=True)  # not contiguous, like split heads
    RotaryPositions(features=2)(x, 1).sum().backward()
    np.testing.assert_array_equal(x.numpy(), X.swapaxes(1, 2))
    np.testing.assert_array_equal(x.grad.numpy()[..., 2:], 1)
    np.testing.assert_array_equal(RotaryPositions()(X, 3), RotaryPositions()(Tensor(X), 3).numpy())


@pytest.mark.parametrize(("make", "message"), [
    (lambda: RotaryPositions(layout="thirds"), "layout must be one of halves, interleaved, got 't"),
    *[(lambda n=n: RotaryPositions(features=n)(Tensor(X)), rf"x of shape \(2, 3, 4, 6\) and {n} features")
      for n in (-2, 3, 8)],
    (lambda: RotaryPositions()(Tensor(X[0, 0, 0])), r"x of shape \(6,\)"),
])
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
