"""Conv1d, MaxPool1d, AvgPool1d, Flatten and Unflatten: their functions with the options kept, PyTorch's state."""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn, optim
from minigrad import functional as F
from minigrad.device import to_numpy

X = np.random.default_rng(83).normal(size=(2, 4, 7))


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"stride": 2, "padding": 1, "dilation": 2, "groups": 2},
                                     {"padding": "same"}])
def test_conv1d_is_its_function(options, device):
    layer = nn.Conv1d(4, 6, 3, **options).to(device, dtype=np.float64)
    groups = options.get("groups", 1)
    shapes = {"weight": (6, 4 // groups, 3), "bias": (6,)} if options.get("bias", True) else {"weight": (6, 4, 3)}
    assert {name: tensor.shape for name, tensor in layer.state_dict().items()} == shapes
    x = Tensor(X, device=device)
    given = {name: value for name, value in options.items() if name != "bias"}
    np.testing.assert_array_equal(to_numpy(layer(x).data),
                                  to_numpy(F.conv1d(x, layer.weight, layer.bias, **given).data))


def test_conv1d_begins_as_pytorchs():
    minigrad.manual_seed(1)
    layer = nn.Conv1d(40, 200, 5, groups=2)  # fan-in 40/2 · 5 = 100
    for values in (layer.weight.data, layer.bias.data):
        assert values.dtype == np.float32
        assert np.abs(values).max() <= 0.1
        assert values.var() == pytest.approx(0.01 / 3, rel=0.15)
    before = layer.weight.data.copy()
    layer.reset_parameters()
    assert (layer.weight.data != before).mean() > 0.99


@pytest.mark.parametrize(("layer", "expected"), [
    (nn.MaxPool1d(3), lambda x: F.max_pool1d(x, 3)),
    (nn.MaxPool1d(3, 2, 1, 2, True), lambda x: F.max_pool1d(x, 3, 2, 1, 2, True)),
    (nn.AvgPool1d(3), lambda x: F.avg_pool1d(x, 3)),
    (nn.AvgPool1d(3, 2, 1, True, False), lambda x: F.avg_pool1d(x, 3, 2, 1, True, False)),
])
def test_pooling_is_its_function(layer, expected):
    np.testing.assert_array_equal(layer(Tensor(X)).numpy(), expected(Tensor(X)).numpy())
    assert layer.stride == (3 if layer.padding == 0 else 2)


def test_flatten_and_unflatten():
    x = Tensor(X)
    assert nn.Flatten()(x).shape == (2, 28)
    assert nn.Flatten(0)(x).shape == (56,)
    assert nn.Flatten(start_dim=0, end_dim=1)(x).shape == (8, 7)
    back = nn.Unflatten(dim=-1, unflattened_size=(4, -1))(nn.Flatten()(x))
    np.testing.assert_array_equal(back.numpy(), X)
    assert nn.Unflatten(0, (1, 2))(x).shape == (1, 2, 4, 7)


def test_a_network_of_all_of_them_learns_where_a_bump_is():
    """Which third of a noisy row holds a bump: by convolution, pooling, a linear layer and Adam."""
    minigrad.manual_seed(2)
    rng = np.random.default_rng(84)
    thirds = rng.integers(0, 3, 120)
    rows = rng.normal(0.0, 0.3, (120, 1, 18)).astype(np.float32)
    for row, third in zip(rows, thirds, strict=True):
        row[0, 6 * third + 2:6 * third + 5] += [1, 2, 1]
    model = nn.Sequential(nn.Conv1d(1, 4, 3, padding="same"), nn.ReLU(), nn.MaxPool1d(6), nn.Flatten(),
                          nn.RMSNorm(12), nn.Linear(12, 3))
    loss, optimizer = nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=0.03)
    for _ in range(40):
        optimizer.zero_grad()
        loss(model(Tensor(rows)), thirds).backward()
        optimizer.step()
    assert (model(Tensor(rows)).numpy().argmax(-1) == thirds).mean() > 0.95


@pytest.mark.parametrize(("layer", "text"), [
    (nn.Conv1d(2, 4, 3), "Conv1d(2, 4, kernel_size=3, stride=1, bias=True)  # 28 parameters"),
    (nn.Conv1d(2, 4, 3, 2, "valid", 2, 2, False),
     "Conv1d(2, 4, kernel_size=3, stride=2, padding='valid', dilation=2, groups=2, bias=False)  # 12 parameters"),
    (nn.MaxPool1d(2), "MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"),
    (nn.AvgPool1d(2, 1), "AvgPool1d(kernel_size=2, stride=1, padding=0, ceil_mode=False, count_include_pad=True)"),
    (nn.Flatten(), "Flatten(start_axis=1, end_axis=-1)"),
    (nn.Unflatten(1, (2, 3)), "Unflatten(axis=1, unflattened_size=(2, 3))"),
])
def test_repr(layer, text):
    assert repr(layer) == text


@pytest.mark.parametrize(("make", "error", "said"), [
    (lambda: nn.Conv1d(0, 4, 3), ValueError, "Conv1d: in_channels must be at least 1, got 0"),
    (lambda: nn.Conv1d(4, 4, 3.0), TypeError, "Conv1d: kernel_size must be an integer, got float"),
    (lambda: nn.Conv1d(4, 6, 3, groups=4), ValueError, "channels 4 and out_channels 6 must be multiples of groups 4"),
    (lambda: nn.MaxPool1d(0), ValueError, "MaxPool1d: kernel_size must be at least 1, got 0"),
    (lambda: nn.AvgPool1d("2"), TypeError, "AvgPool1d: kernel_size must be an integer, got str"),
    (lambda: nn.Conv1d(3, 4, 3)(Tensor(X)), ValueError, r"conv1d: input\.shape\[-2\].*\(2, 4, 7\) and \(4, 3, 3\)"),
    (lambda: nn.Flatten(2)(Tensor(X[0])), IndexError, r"flatten: axis 2 is out of range for shape \(4, 7\)"),
    (lambda: nn.Unflatten(3, (1, 2))(Tensor(X)), IndexError, r"Unflatten: axis 3 is out of range.*\(2, 4, 7\)"),
    (lambda: nn.Unflatten(1, (3, 2))(Tensor(X)), ValueError, r"\(2, 3, 2, 7\)"),
])
def test_mistakes_are_named(make, error, said):
    with pytest.raises(error, match=said):
        make()
