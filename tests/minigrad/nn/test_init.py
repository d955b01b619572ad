"""Initialisers: bounds and variances by their formulas, the same draw in every dtype and on every device."""

import math

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn
from minigrad.nn import init

from tests.minigrad.ops.row import function, table

OUT, IN = 300, 200

# The initialiser, the bound of the uniform distribution or None, the mean, the standard deviation
@pytest.mark.parametrize(("fill", "bound", "mean", "deviation"), table("""
    uniform_(x, -3, 3)          3                   0       sqrt(3)
    normal_(x, 5.0, 0.02)       None                5       0.02
    xavier_uniform_(x)          sqrt(3) * XAVIER    0       XAVIER
""", {"XAVIER": math.sqrt(2 / (OUT + IN))}))
def test_spread(fill, bound, mean, deviation):
    minigrad.manual_seed(0)
    tensor = Tensor(np.zeros((OUT, IN)))
    assert function(fill, vars(init))(tensor) is tensor
    values = tensor.data - mean
    assert np.abs(values.mean()) < 5 * deviation / math.sqrt(OUT * IN)
    assert values.std() == pytest.approx(deviation, rel=0.015)
    if bound is None:
        assert np.abs(values).max() > 3.5 * deviation
    else:
        assert 0.999 * bound < np.abs(values).max() <= bound


@pytest.mark.parametrize("fill", ["uniform_(x)", "normal_(x)"])
def test_one_seed_one_model(fill, device):
    """On every device the same bits; in float32 the float64 draw, rounded."""

    def draw(where, dtype):
        minigrad.manual_seed(5)
        return function(fill, vars(init))(Tensor(np.zeros((4, 3), dtype), device=where)).numpy()

    expected = draw("cpu", np.float64)
    np.testing.assert_array_equal(draw(device, np.float64), expected)
    np.testing.assert_array_equal(draw(device, np.float32), expected.astype(np.float32))


# --- `nn.no_init`


class Own(nn.Module):
    """A module that calls the initialisers."""

    def __init__(self):
        super().__init__()
        self.drawn, self.constant = (nn.Parameter(np.zeros((3, 2), np.float32)) for _ in range(2))
        init.xavier_uniform_(self.drawn)
        init.ones_(self.constant)


MODULES = [
    lambda: nn.Linear(3, 4), lambda: nn.Embedding(5, 3, padding_idx=1), lambda: nn.LayerNorm(4), Own,
]


@pytest.mark.parametrize("make", MODULES)
def test_nothing_is_drawn_and_the_loaded_module_is_the_same(make):
    whole, before = make(), minigrad.random.get_state()
    with nn.no_init():
        module = make()
    assert minigrad.random.get_state() == before
    for parameter in module.parameters():
        values = np.unique(parameter.numpy())  # zeros, or a constant of the module
        assert len(values) == 1
        assert values[0] in (0, 1)
    module.load_state_dict(whole.state_dict())
    for mine, other in zip(module.parameters(), whole.parameters(), strict=True):
        np.testing.assert_array_equal(mine.numpy(), other.numpy())
        assert mine.requires_grad
        assert not np.shares_memory(mine.data, other.data)
