"""Each layer is its function with the options kept, has PyTorch's names in its state, and says what it is."""

import re

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn
from minigrad import functional as F

from tests.minigrad.ops.row import function

DRAW = np.random.default_rng(81)
X = DRAW.normal(size=(2, 4, 6)) * 2
IDS = np.array([[0, 6, 3], [3, 3, 1]])

# How a layer is made, what it computes of x, the shapes in its state, and what its repr tells
LAYERS = """
    nn.Linear(6, 5)   linear(x, y.weight, y.bias)   dict(weight=(5, 6), bias=(5,))  "35 parameters"
    nn.Linear(6, 5, bias=False)   linear(x, y.weight)   dict(weight=(5, 6))   "30 parameters"
    nn.Embedding(7, 3)   embedding(IDS, y.weight)   dict(weight=(7, 3))   "21 parameters"
    nn.LayerNorm(6)   layer_norm(x, y.weight, y.bias)   dict(weight=(6,), bias=(6,))   "bias=True)"
    nn.LayerNorm(6, 1e-3, bias=False)   layer_norm(x, y.weight, eps=1e-3)   dict(weight=(6,))   "eps=0.001, bias"
    nn.LayerNorm(6, elementwise_affine=False)   layer_norm(x)   {}   "elementwise_affine=False)"
    nn.ReLU()   relu(x)   {}   "ReLU()"
    nn.GELU("tanh")   gelu(x, approximate="tanh")   {}   "GELU(approximate='tanh')"
    nn.Dropout(0.0)   x   {}   "Dropout(p=0.0)"
"""


@pytest.mark.parametrize("line", LAYERS.strip().splitlines())
def test_a_layer_is_its_function_of_what_it_learns(line, device):
    make, call, shapes, text = re.split(r"  +", line.strip(), maxsplit=3)
    layer = eval(make)  # noqa: S307 - of our own writing
    assert text.strip('"') in repr(layer)
    assert [(name, tensor.shape, tensor.dtype) for name, tensor in layer.state_dict().items()] == [
        (name, shape, np.float32) for name, shape in eval(shapes).items()]  # noqa: S307
    layer.to(device, dtype=np.float64)
    for tensor in layer.parameters():
        tensor.copy_(1 + np.arange(tensor.size).reshape(tensor.shape) / tensor.size)
    x = IDS if "Embedding" in make else Tensor(X, device=device)
    np.testing.assert_array_equal(layer(x).numpy(), function(call, {**vars(F), "IDS": IDS})(x, layer).numpy())


def test_linear_begins_as_pytorchs():
    """Of fan-in 100: uniform up to 0.1. A seed gives the same layer."""
    minigrad.manual_seed(1)
    layer = nn.Linear(100, 400)
    before = layer.weight.data.copy()
    for values in (before, layer.bias.data):
        assert 0.099 < np.abs(values).max() <= 0.1
        assert values.var() == pytest.approx(0.01 / 3, rel=0.1)
    assert (nn.Linear(100, 400).weight.data != before).mean() > 0.99
    minigrad.manual_seed(1)
    np.testing.assert_array_equal(nn.Linear(100, 400).weight.data, before)


def test_an_embedding_never_learns_the_padding():
    layer = nn.Embedding(7, 3, padding_idx=-5)
    assert not layer.weight.numpy()[2].any()
    layer([2, 4, 2]).sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy(), np.eye(7)[4][:, None] * np.ones(3))
