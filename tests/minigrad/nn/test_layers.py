"""Each layer against its formula, its state by PyTorch's names, and its mistakes."""


import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn
from minigrad.device import to_numpy

DRAW = np.random.default_rng(3)
X = DRAW.normal(size=(2, 4, 6))


def array(tensor):
    return to_numpy(tensor.data)


def on(device, values):
    return Tensor(values, device=device, requires_grad=True)


LAYERS = {
    "Linear": (lambda: nn.Linear(6, 5), {"weight": (5, 6), "bias": (5,)}),
    "Linear without bias": (lambda: nn.Linear(6, 5, bias=False), {"weight": (5, 6)}),
    "Embedding": (lambda: nn.Embedding(7, 3), {"weight": (7, 3)}),
    "LayerNorm": (lambda: nn.LayerNorm(6), {"weight": (6,), "bias": (6,)}),
    "LayerNorm without bias": (lambda: nn.LayerNorm(6, bias=False), {"weight": (6,)}),
    "Dropout": (lambda: nn.Dropout(0.1), {}),
}


@pytest.mark.parametrize(("make", "shapes"), LAYERS.values(), ids=LAYERS)
def test_state_by_pytorchs_names(make, shapes):
    state = make().state_dict()
    assert {name: tensor.shape for name, tensor in state.items()} == shapes
    assert list(state) == list(shapes)
    assert all(tensor.dtype == np.float32 for tensor in state.values())


@pytest.mark.parametrize("bias", [True, False])
def test_linear(bias, device):
    layer = nn.Linear(6, 5, bias=bias).to(device, dtype=np.float64)
    out = layer(on(device, X))
    expected = X @ array(layer.weight).T + (array(layer.bias) if bias else 0)
    np.testing.assert_allclose(array(out), expected, rtol=1e-13, atol=1e-14)
    out.sum().backward()
    np.testing.assert_allclose(array(layer.weight.grad), np.tile(X.sum((0, 1)), (5, 1)), rtol=1e-12)
    if bias:
        np.testing.assert_array_equal(array(layer.bias.grad), np.full(5, 8.0))


def test_linear_begins_as_pytorchs():
    minigrad.manual_seed(1)
    layer = nn.Linear(100, 400)
    for values in (layer.weight.data, layer.bias.data):
        assert np.abs(values).max() <= 0.1
        assert np.abs(values).max() > 0.099
        assert values.var() == pytest.approx(0.01 / 3, rel=0.1)
    before = layer.weight.data.copy()
    layer.reset_parameters()
    assert (layer.weight.data != before).mean() > 0.99


def test_embedding(device):
    layer = nn.Embedding(7, 3).to(device, dtype=np.float64)
    ids = np.array([[0, 6, 3], [3, 3, 1]])
    out = layer(Tensor(ids, device=device))
    np.testing.assert_array_equal(array(out), array(layer.weight)[ids])
    weights = DRAW.normal(size=(2, 3, 3))
    (out * Tensor(weights, device=device)).sum().backward()
    expected = np.zeros((7, 3))
    np.add.at(expected, ids, weights)
    np.testing.assert_allclose(array(layer.weight.grad), expected, rtol=1e-13)


@pytest.mark.parametrize("padding_idx", [2, -5])
def test_embedding_never_learns_the_padding(padding_idx, device):
    layer = nn.Embedding(7, 3, padding_idx=padding_idx).to(device)
    assert layer.padding_idx == 2
    np.testing.assert_array_equal(array(layer.weight)[2], np.zeros(3))
    layer.weight[2] = 5.0  # whatever the row holds is read, and gets no gradient
    out = layer(Tensor(np.array([[2, 4, 2]]), device=device))
    np.testing.assert_array_equal(array(out)[0, 0], np.full(3, 5.0))
    out.sum().backward()
    expected = np.zeros((7, 3))
    expected[4] = 1
    np.testing.assert_array_equal(array(layer.weight.grad), expected)


def test_embedding_takes_arrays_and_checks_ids():
    layer = nn.Embedding(7, 3)
    np.testing.assert_array_equal(layer(np.array([1, 1])).numpy(), layer.weight.data[[1, 1]])
    with pytest.raises(IndexError, match=r"id 7 is out of range; ids must be in \[0, 7\)"):
        layer(np.array([0, 7]))
    with pytest.raises(IndexError, match="-1"):
        layer(np.array([-1]))
    with pytest.raises(TypeError, match="integers"):
        layer(np.array([1.0]))


@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm(bias, device):
    layer = nn.LayerNorm(6, eps=1e-3, bias=bias).to(device, dtype=np.float64)
    layer.weight.copy_(np.arange(1.0, 7.0))
    if bias:
        layer.bias.copy_(np.linspace(-1, 1, 6))
    out = layer(on(device, X))
    normal = (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-3)
    expected = normal * np.arange(1.0, 7.0) + (np.linspace(-1, 1, 6) if bias else 0)
    np.testing.assert_allclose(array(out), expected, rtol=1e-12, atol=1e-13)
    out.sum().backward()
    np.testing.assert_allclose(array(layer.weight.grad), normal.sum((0, 1)), rtol=1e-11, atol=1e-13)


def test_layer_norm_begins_as_the_plain_one():
    layer = nn.LayerNorm(6)
    assert layer.eps == 1e-5
    np.testing.assert_array_equal(layer.weight.data, np.ones(6))
    np.testing.assert_array_equal(layer.bias.data, np.zeros(6))


def test_dropout_drops_in_training_only(device):
    layer, x = nn.Dropout(0.25), on(device, np.ones((200, 300)))
    values, counts = np.unique(array(layer(x)), return_counts=True)
    np.testing.assert_allclose(values, [0, 4 / 3], rtol=1e-12)
    assert counts[0] / 60000 == pytest.approx(0.25, abs=0.01)  # six standard deviations
    assert layer.eval()(x) is x
    assert nn.Dropout(0.0)(x) is x


def test_one_dropout_used_twice_draws_two_masks_and_the_gradient_knows_both():
    layer, x = nn.Dropout(0.5), on("cpu", np.ones(1000))
    first, second = layer(x), layer(x)
    assert (first.data != second.data).mean() > 0.4
    (first + second).sum().backward()
    np.testing.assert_array_equal(x.grad.data, first.data + second.data)


@pytest.mark.parametrize("make", [lambda: nn.Linear(64, 64), lambda: nn.Embedding(50, 8)])
def test_a_seed_gives_the_same_layer(make):
    minigrad.manual_seed(7)
    first, other = make(), make()
    minigrad.manual_seed(7)
    again = make()
    np.testing.assert_array_equal(first.weight.data, again.weight.data)
    assert (first.weight.data != other.weight.data).any()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nn.Linear(2, 3), "Linear(in_features=2, out_features=3, bias=True)  # 9 parameters"),
        (lambda: nn.Embedding(4, 2, 1), "Embedding(4, 2, padding_idx=1)  # 8 parameters"),
        (lambda: nn.LayerNorm(4, bias=False), "LayerNorm(4, eps=1e-05, bias=False)  # 4 parameters"),
        (lambda: nn.Dropout(0.1), "Dropout(p=0.1)"),
    ],
)
def test_repr(make, text):
    assert repr(make()) == text


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: nn.Linear(0, 3), ValueError, "Linear: in_features must be at least 1, got 0"),
        (lambda: nn.Linear(3, 2.0), TypeError, "Linear: out_features must be an integer, got float"),
        (lambda: nn.Linear(True, 2), TypeError, "in_features must be an integer, got bool"),
        (lambda: nn.Embedding(-1, 3), ValueError, "Embedding: num_embeddings must be at least 1"),
        (lambda: nn.Embedding(3, 3, padding_idx=3), ValueError, "padding_idx .* num_embeddings=3, got 3"),
        (lambda: nn.Embedding(3, 3, padding_idx=-4), ValueError, "padding_idx .* got -4"),
        (lambda: nn.LayerNorm((3, 4)), TypeError, "LayerNorm: normalized_shape must be an integer, got tuple"),
        (lambda: nn.Dropout(1.0), ValueError, r"Dropout: p must be a probability in \[0, 1\), got 1.0"),
        (lambda: nn.Dropout(-0.1), ValueError, "got -0.1"),
    ],
)
def test_mistakes_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
