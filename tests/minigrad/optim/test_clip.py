"""Clipping by norm."""

import math

import numpy as np
import pytest

from minigrad import Tensor
from minigrad.device import to_numpy
from minigrad.optim import clip_grad_norm_

GRADIENTS = [np.array([[3.0, -4.0], [0.0, 12.0]]), np.array([84.0]), None, np.array(0.0)]  # norm 85


def make(gradients=GRADIENTS, device="cpu", dtype=np.float64):
    params = []
    for g in gradients:
        shape = () if g is None else np.shape(g)
        p = Tensor(np.zeros(shape, dtype), device=device, requires_grad=True)
        p.grad = None if g is None else Tensor(np.asarray(g, dtype), device=device)
        params.append(p)
    return params


@pytest.mark.parametrize("max_norm", [1e-3, 84.999, 85.0, 85.001, math.inf])
def test_above_the_bound_all_gradients_shrink_together_and_else_not_a_bit_changes(max_norm, device):
    params = make(device=device)
    loss = (params[1] * params[1].grad).sum()  # saves a gradient
    assert float(clip_grad_norm_(iter(params), max_norm)) == pytest.approx(85.0, rel=1e-14)
    if max_norm < 85:
        with pytest.raises(RuntimeError, match="changed in place"):
            loss.backward()
    assert params[2].grad is None
    for p, g in zip(params, GRADIENTS, strict=True):
        if g is not None and max_norm < 85:
            np.testing.assert_allclose(to_numpy(p.grad.data), g * (max_norm / 85), rtol=1e-14)
        elif g is not None:
            np.testing.assert_array_equal(to_numpy(p.grad.data), g)


def test_zero_stays_zero_and_nan_is_seen(device):
    """And no gradient at all, a single tensor, and Fortran order are served."""
    for gradients, norm in (([np.zeros(3)], 0), ([None], 0), ([], 0), ([[np.nan, 1.0], [2.0]], math.nan),
                            ([[np.inf, 1.0], [2.0]], math.inf)):
        np.testing.assert_equal(float(clip_grad_norm_(make(gradients, device), math.inf)), norm)
    (p,) = make([np.zeros((2, 2))])
    p.grad.data = np.asfortranarray([[3.0, 0.0], [4.0, 0.0]])
    assert clip_grad_norm_(p, 1.0) == 5.0
    np.testing.assert_allclose(p.grad.data, [[0.6, 0.0], [0.8, 0.0]], rtol=1e-15)


@pytest.mark.parametrize(("dtype", "size"), [
    (np.float16, 3e4), (np.float16, 1e-7), (np.float32, 1e25), (np.float32, 1e-20), (np.float32, 1e-44),
    (np.float64, 1e300), (np.float64, 1e-320),
])
def test_squares_out_of_range(dtype, size):
    size = float(dtype(size))
    params = make([[size, 0.0], [size]], dtype=dtype)
    assert clip_grad_norm_(params, size) == pytest.approx(math.sqrt(2) * size, rel=1e-6, abs=0)
    expected = np.array([math.sqrt(0.5) * size], dtype)
    np.testing.assert_array_max_ulp(params[1].grad.data, expected, 2)
    assert params[1].grad.dtype == dtype


@pytest.mark.parametrize("bound", [1.0, 1e-5])
def test_float16_is_rounded_once(bound, device):
    """A coefficient in float16 would have three digits, and none at all below 6e-8."""
    values = np.random.default_rng(0).normal(0, 100, 1000).astype(np.float16)
    (p,) = make([values], device, np.float16)
    norm = float(clip_grad_norm_(p, bound))
    assert norm == pytest.approx(np.linalg.norm(values.astype(np.float64)), rel=1e-5)
    exact = values.astype(np.float64) * (bound / norm)
    np.testing.assert_array_max_ulp(to_numpy(p.grad.data), exact.astype(np.float16), 1)
    assert (to_numpy(p.grad.data) == exact.astype(np.float16)).mean() > 0.99
