"""functional_call: arguments, buffers, tied parameters, and what it refuses."""

import numpy as np
import pytest

from minigrad import Tensor, nn
from minigrad.func import functional_call


class Affine(nn.Module):
    """``scale·x + shift``, where the shift is a buffer, and the scale has two names."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(np.array([2.0, 3.0]))
        self.tied = self.scale
        self.register_buffer("shift", Tensor(np.array([10.0, 20.0])))

    def forward(self, x, factor=1.0):
        return (self.tied * x + self.shift) * factor


X, SCALE = Tensor([1.0, 1.0], dtype=np.float64), Tensor([5.0, 7.0], dtype=np.float64)


def test_tied_parameters_get_one_value_and_are_tied_again_after_an_error():
    module = Affine()
    own = module.scale
    for values in ({"tied": SCALE}, {"scale": SCALE, "tied": SCALE}):
        assert functional_call(module, values, X).tolist() == [15.0, 27.0]
    with pytest.raises(ValueError, match="'tied' is tied"):
        functional_call(module, {"scale": SCALE, "tied": SCALE.clone()}, X)
    with pytest.raises(TypeError, match="mul"):
        functional_call(module, {"tied": SCALE}, "text")
    assert module.scale is module.tied is own


