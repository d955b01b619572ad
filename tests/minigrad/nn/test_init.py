"""Initialisers: bounds and variances by their formulas, the same draw in every dtype and on every device."""

import math

import numpy as np
import pytest

import minigrad
from minigrad import Tensor
from minigrad.nn import init

OUT, IN = 300, 200
XAVIER = math.sqrt(2 / (OUT + IN))

SPREAD = {  # the initialiser, the bound of the uniform distribution or None, the mean, the standard deviation
    "uniform": (lambda t: init.uniform_(t, -3, 3), 3, 0, math.sqrt(3)),
    "normal": (lambda t: init.normal_(t, 5.0, 0.02), None, 5, 0.02),
    "xavier_uniform": (init.xavier_uniform_, math.sqrt(3) * XAVIER, 0, XAVIER),
}


@pytest.mark.parametrize(("fill", "bound", "mean", "deviation"), SPREAD.values(), ids=SPREAD)
def test_spread(fill, bound, mean, deviation):
    minigrad.manual_seed(0)
    tensor = Tensor(np.zeros((OUT, IN)))
    assert fill(tensor) is tensor
    values = tensor.data - mean
    assert np.abs(values.mean()) < 5 * deviation / math.sqrt(OUT * IN)
    assert values.std() == pytest.approx(deviation, rel=0.015)
    if bound is None:
        assert np.abs(values).max() > 3.5 * deviation
    else:
        assert 0.999 * bound < np.abs(values).max() <= bound


@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_one_seed_one_model(name, device):
    """On every device the same bits; in float32 the float64 draw, rounded."""

    def draw(where, dtype):
        minigrad.manual_seed(5)
        return SPREAD[name][0](Tensor(np.zeros((4, 3), dtype), device=where)).numpy()

    expected = draw("cpu", np.float64)
    np.testing.assert_array_equal(draw(device, np.float64), expected)
    np.testing.assert_array_equal(draw(device, np.float32), expected.astype(np.float32))
