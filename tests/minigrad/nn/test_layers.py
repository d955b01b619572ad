"""Each layer is its function with the options kept, has PyTorch's names in its state, and says what it is."""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn
from minigrad import functional as F

DRAW = np.random.default_rng(81)
X = DRAW.normal(size=(2, 4, 6)) * 2
IDS = np.array([[0, 6, 3], [3, 3, 1]])

LEARNING = {  # how a layer is made, what it computes, its input, the shapes in its state
    "Linear(in_features=6, out_features=5, bias=True)  # 35 parameters": (
        lambda: nn.Linear(6, 5), lambda m, x: F.linear(x, m.weight, m.bias), X, {"weight": (5, 6), "bias": (5,)}),
    "Linear(in_features=6, out_features=5, bias=False)  # 30 parameters": (
        lambda: nn.Linear(6, 5, bias=False), lambda m, x: F.linear(x, m.weight), X, {"weight": (5, 6)}),
    "Embedding(7, 3)  # 21 parameters": (
        lambda: nn.Embedding(7, 3), lambda m, ids: F.embedding(ids, m.weight), IDS, {"weight": (7, 3)}),
    "LayerNorm(6, eps=1e-05, bias=True)  # 12 parameters": (
        lambda: nn.LayerNorm(6), lambda m, x: F.layer_norm(x, m.weight, m.bias), X, {"weight": (6,), "bias": (6,)}),
    "LayerNorm(6, eps=0.001, bias=False)  # 6 parameters": (
        lambda: nn.LayerNorm(6, 1e-3, bias=False), lambda m, x: F.layer_norm(x, m.weight, eps=1e-3), X,
        {"weight": (6,)}),
    "LayerNorm(6, eps=1e-05, elementwise_affine=False)": (
        lambda: nn.LayerNorm(6, elementwise_affine=False), lambda m, x: F.layer_norm(x), X, {}),
    "ReLU()": (nn.ReLU, lambda m, x: F.relu(x), X, {}),
    "GELU(approximate='tanh')": (lambda: nn.GELU("tanh"), lambda m, x: F.gelu(x, approximate="tanh"), X, {}),
    "Dropout(p=0.0)": (lambda: nn.Dropout(0.0), lambda m, x: x, X, {}),
}


@pytest.mark.parametrize("text", LEARNING)
def test_a_layer_is_its_function_of_what_it_learns(text, device):
    make, function, array, shapes = LEARNING[text]
    layer = make()
    assert repr(layer) == text
    assert [(name, tensor.shape, tensor.dtype) for name, tensor in layer.state_dict().items()] == [
        (name, shape, np.float32) for name, shape in shapes.items()]
    layer.to(device, dtype=np.float64)
    for tensor in layer.parameters():
        tensor.copy_(1 + np.arange(tensor.size).reshape(tensor.shape) / tensor.size)
    x = Tensor(array, device=device)
    np.testing.assert_array_equal(layer(x).numpy(), function(layer, x).numpy())


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


@pytest.mark.parametrize("padding_idx", [2, -5])
def test_an_embedding_never_learns_the_padding(padding_idx, device):
    layer = nn.Embedding(7, 3, padding_idx=padding_idx).to(device)
    np.testing.assert_array_equal(layer.weight.numpy()[2], np.zeros(3))
    layer.weight[2] = 5.0  # whatever the row holds is read, and gets no gradient
    out = layer(np.array([[2, 4, 2]]))
    np.testing.assert_array_equal(out.numpy()[0, 0], np.full(3, 5.0))
    out.sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy(), np.eye(7)[4][:, None] * np.ones(3))
