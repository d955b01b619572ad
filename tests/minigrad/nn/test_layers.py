"""Each layer is its function with the options kept, has PyTorch's names in its state, and says what it is."""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn
from minigrad import functional as F

DRAW = np.random.default_rng(81)
X, Y, P = DRAW.normal(size=(2, 4, 6)) * 2, DRAW.normal(size=(2, 4, 6)), DRAW.uniform(0.1, 0.9, size=(2, 4, 6))
IDS, TARGET = np.array([[0, 6, 3], [3, 3, 1]]), np.array([[0, 5, 4, 2], [1, 1, 4, 3]])
WEIGHT = np.array([1.0, 0.5, 2.0, 1.5, 0.1, 3.0])


PLAIN = [  # the layer, its function, the inputs, options of both; how many of these must be given
    (nn.ReLU, F.relu, (X,), {}, 0),
    (nn.ReLU6, F.relu6, (3 * X,), {}, 0),
    (nn.GELU, F.gelu, (X,), {"approximate": "tanh"}, 0),
    (nn.SiLU, F.silu, (X,), {}, 0),
    (nn.Mish, F.mish, (X,), {}, 0),
    (nn.LeakyReLU, F.leaky_relu, (X,), {"negative_slope": 0.2}, 0),
    (nn.ELU, F.elu, (X,), {"alpha": 0.5}, 0),
    (nn.CELU, F.celu, (X,), {"alpha": 2.0}, 0),
    (nn.SELU, F.selu, (X,), {}, 0),
    (nn.Sigmoid, F.sigmoid, (X,), {}, 0),
    (nn.LogSigmoid, F.logsigmoid, (X,), {}, 0),
    (nn.Hardsigmoid, F.hardsigmoid, (X,), {}, 0),
    (nn.Tanh, F.tanh, (X,), {}, 0),
    (nn.Hardtanh, F.hardtanh, (X,), {"min_val": -2, "max_val": 0.5}, 0),
    (nn.Softsign, F.softsign, (X,), {}, 0),
    (nn.Softplus, F.softplus, (10 * X,), {"beta": 2, "threshold": 3}, 0),
    (nn.Softmax, F.softmax, (X,), {"axis": 1}, 0),
    (nn.LogSoftmax, F.log_softmax, (X,), {"axis": 0}, 0),
    (nn.MaxPool1d, F.max_pool1d, (X,),
     {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": 2, "ceil_mode": True}, 1),
    (nn.AvgPool1d, F.avg_pool1d, (X,),
     {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}, 1),
    (nn.Flatten, Tensor.flatten, (X,), {"start_axis": 0, "end_axis": 1}, 2),
    (nn.MSELoss, F.mse_loss, (X, Y), {"reduction": "sum"}, 0),
    (nn.L1Loss, F.l1_loss, (X, Y), {"reduction": "none"}, 0),
    (nn.SmoothL1Loss, F.smooth_l1_loss, (X, Y), {"reduction": "sum", "beta": 0.3}, 0),
    (nn.HuberLoss, F.huber_loss, (X, Y), {"reduction": "sum", "delta": 0.3}, 0),
    (nn.NLLLoss, F.nll_loss, (X, TARGET), {"weight": WEIGHT, "ignore_index": 4, "reduction": "sum"}, 0),
    (nn.CrossEntropyLoss, F.cross_entropy, (X, np.where(TARGET == 4, -100, TARGET)),
     {"weight": WEIGHT, "ignore_index": -100, "reduction": "none", "label_smoothing": 0.2}, 0),
    (nn.BCELoss, F.binary_cross_entropy, (P, Y > 0), {"weight": WEIGHT, "reduction": "sum"}, 0),
    (nn.BCEWithLogitsLoss, F.binary_cross_entropy_with_logits, (X, P),
     {"weight": WEIGHT, "reduction": "none", "pos_weight": WEIGHT[::-1]}, 0),
    (nn.KLDivLoss, F.kl_div, (X, P), {"reduction": "batchmean", "log_target": True}, 0),
    (nn.CosineSimilarity, F.cosine_similarity, (X, Y), {"axis": 0, "eps": 0.1}, 0),
]


@pytest.mark.parametrize(("kind", "function", "arrays", "options", "needed"), PLAIN)
def test_a_layer_without_parameters_is_its_function(kind, function, arrays, options, needed, device):
    for given in (options, dict(list(options.items())[:needed])):
        layer = kind(*(Tensor(value) if isinstance(value, np.ndarray) else value for value in given.values()))
        assert list(layer.parameters()) == []
        assert list(layer.state_dict()) == [name for name, value in given.items() if isinstance(value, np.ndarray)]
        inputs = [Tensor(array, device=device) for array in arrays]
        out = layer.to(device)(*inputs)
        assert out.device == device
        np.testing.assert_array_equal(out.numpy(), function(*inputs, **given).numpy())
    printed = ", ".join(f"{name}={value!r}" for name, value in options.items()
                        if name not in ("weight", "pos_weight", "ignore_index"))
    assert repr(kind(*options.values())) == f"{kind.__name__}({printed})"


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
    "RMSNorm(6, eps=None, elementwise_affine=True)  # 6 parameters": (
        lambda: nn.RMSNorm(6), lambda m, x: F.rms_norm(x, m.weight), X, {"weight": (6,)}),
    "RMSNorm(6, eps=0.1, elementwise_affine=False)": (
        lambda: nn.RMSNorm(6, 0.1, False), lambda m, x: F.rms_norm(x, eps=0.1), X, {}),
    "Conv1d(4, 6, kernel_size=3, stride=1, bias=True)  # 78 parameters": (
        lambda: nn.Conv1d(4, 6, 3), lambda m, x: F.conv1d(x, m.weight, m.bias), X, {"weight": (6, 4, 3), "bias": (6,)}),
    "Conv1d(4, 6, kernel_size=3, stride=2, padding=1, dilation=2, groups=2, bias=False)  # 36 parameters": (
        lambda: nn.Conv1d(4, 6, 3, 2, 1, 2, 2, False), lambda m, x: F.conv1d(x, m.weight, None, 2, 1, 2, 2), X,
        {"weight": (6, 2, 3)}),
    "Unflatten(axis=-1, unflattened_size=(2, -1))": (
        lambda: nn.Unflatten(-1, unflattened_size=[2, -1]), lambda m, x: x.reshape((2, 4, 2, 3)), X, {}),
    "Flatten(start_axis=1, end_axis=-1)": (nn.Flatten, lambda m, x: x.reshape((2, 24)), X, {}),
    "Softmax(axis=1)": (lambda: nn.Softmax(1), lambda m, x: F.softmax(x, 1), X, {}),
    "Identity()": (lambda: nn.Identity(54, unused=True), lambda m, x: x, X, {}),
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


@pytest.mark.parametrize("make", [lambda: nn.Linear(100, 400), lambda: nn.Conv1d(40, 400, 5, groups=2)])
def test_linear_and_conv1d_begin_as_pytorchs(make):
    """Of fan-in 100: uniform up to 0.1. A seed gives the same layer."""
    minigrad.manual_seed(1)
    layer = make()
    before = layer.weight.data.copy()
    for values in (before, layer.bias.data):
        assert 0.099 < np.abs(values).max() <= 0.1
        assert values.var() == pytest.approx(0.01 / 3, rel=0.1)
    layer.reset_parameters()
    assert (layer.weight.data != before).mean() > 0.99
    minigrad.manual_seed(1)
    np.testing.assert_array_equal(make().weight.data, before)


def test_norms_begin_as_the_plain_ones_and_an_embedding_as_normal_draws():
    norm = nn.LayerNorm(2)
    assert (norm.weight.tolist(), norm.bias.tolist(), nn.RMSNorm(2).weight.tolist()) == ([1, 1], [0, 0], [1, 1])
    minigrad.manual_seed(1)
    table = nn.Embedding(1000, 8).weight.data
    assert table.mean() == pytest.approx(0, abs=0.05)
    assert table.std() == pytest.approx(1, rel=0.03)


@pytest.mark.parametrize("padding_idx", [2, -5])
def test_an_embedding_never_learns_the_padding(padding_idx, device):
    layer = nn.Embedding(7, 3, padding_idx=padding_idx).to(device)
    assert repr(layer) == "Embedding(7, 3, padding_idx=2)  # 21 parameters"
    np.testing.assert_array_equal(layer.weight.numpy()[2], np.zeros(3))
    layer.weight[2] = 5.0  # whatever the row holds is read, and gets no gradient
    out = layer(np.array([[2, 4, 2]]))
    np.testing.assert_array_equal(out.numpy()[0, 0], np.full(3, 5.0))
    out.sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy(), np.eye(7)[4][:, None] * np.ones(3))


def test_dropout_drops_in_training_only():
    layer, x = nn.Dropout(0.25), Tensor(np.ones(100))
    np.testing.assert_allclose(np.unique(layer(x).numpy()), [0, 4 / 3], rtol=1e-12)
    assert layer.eval()(x) is x


def test_the_weights_of_a_loss_are_float32_unless_they_are_tensors():
    given = Tensor(WEIGHT)
    assert nn.CrossEntropyLoss(given).weight is given
    assert nn.CrossEntropyLoss(WEIGHT).weight.dtype == np.float32
