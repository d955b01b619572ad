"""Each loss module is its function with the options kept; its weights are buffers."""

import numpy as np
import pytest

from minigrad import Tensor, nn
from minigrad import functional as F
from minigrad.device import to_numpy

DRAW = np.random.default_rng(81)
X, Y, P = DRAW.normal(size=(3, 4)), DRAW.normal(size=(3, 4)), DRAW.uniform(0.1, 0.9, size=(3, 4))
IDS, WEIGHT = np.array([0, 3, -1]), np.array([1.0, 0.5, 2.0, 1.5])

LOSSES = {  # the module, its inputs, and the function with the same options
    "MSELoss": (lambda: nn.MSELoss("sum"), (X, Y), lambda x, y: F.mse_loss(x, y, "sum")),
    "L1Loss": (lambda: nn.L1Loss("none"), (X, Y), lambda x, y: F.l1_loss(x, y, "none")),
    "SmoothL1Loss": (lambda: nn.SmoothL1Loss("sum", 0.3), (X, Y), lambda x, y: F.smooth_l1_loss(x, y, "sum", 0.3)),
    "HuberLoss": (lambda: nn.HuberLoss("sum", 0.3), (X, Y), lambda x, y: F.huber_loss(x, y, "sum", 0.3)),
    "NLLLoss": (lambda: nn.NLLLoss(WEIGHT, -1, "sum"), (X, IDS), lambda x, y: F.nll_loss(x, y, WEIGHT, -1, "sum")),
    "CrossEntropyLoss": (lambda: nn.CrossEntropyLoss(WEIGHT, -1, "none", 0.2), (X, IDS),
                         lambda x, y: F.cross_entropy(x, y, WEIGHT, -1, "none", 0.2)),
    "BCELoss": (lambda: nn.BCELoss(WEIGHT, "sum"), (P, Y > 0),
                lambda x, y: F.binary_cross_entropy(x, y, WEIGHT, "sum")),
    "BCEWithLogitsLoss": (lambda: nn.BCEWithLogitsLoss(WEIGHT, "none", WEIGHT[::-1]), (X, P),
                          lambda x, y: F.binary_cross_entropy_with_logits(x, y, WEIGHT, "none", WEIGHT[::-1])),
    "KLDivLoss": (lambda: nn.KLDivLoss("batchmean", True), (X, Y), lambda x, y: F.kl_div(x, y, "batchmean", True)),
    "CosineSimilarity": (lambda: nn.CosineSimilarity(dim=0, eps=0.1), (X, Y),
                         lambda x, y: F.cosine_similarity(x, y, 0, 0.1)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_its_function(name, device):
    make, (x, y), function = LOSSES[name]
    loss = make().to(device, dtype=np.float64)
    target = Tensor(y, device=device)
    found, expected = loss(Tensor(x, device=device), target), function(Tensor(x), Tensor(y))
    assert found.device == device
    np.testing.assert_allclose(to_numpy(found.data), expected.numpy(), rtol=1e-13)
    assert list(loss.parameters()) == []


DEFAULTS = {
    nn.MSELoss: lambda x, y: F.mse_loss(x, y), nn.L1Loss: lambda x, y: F.l1_loss(x, y),
    nn.SmoothL1Loss: lambda x, y: F.smooth_l1_loss(x, y), nn.HuberLoss: lambda x, y: F.huber_loss(x, y),
    nn.BCEWithLogitsLoss: lambda x, y: F.binary_cross_entropy_with_logits(x, y),
    nn.KLDivLoss: lambda x, y: F.kl_div(x, y), nn.CosineSimilarity: lambda x, y: F.cosine_similarity(x, y),
}


@pytest.mark.parametrize("kind", DEFAULTS, ids=lambda kind: kind.__name__)
def test_defaults_are_the_functions(kind):
    np.testing.assert_array_equal(kind()(Tensor(X), Tensor(P)).numpy(), DEFAULTS[kind](Tensor(X), Tensor(P)).numpy())


@pytest.mark.parametrize("kind", [nn.NLLLoss, nn.CrossEntropyLoss])
def test_defaults_of_class_targets(kind):
    function = {nn.NLLLoss: F.nll_loss, nn.CrossEntropyLoss: F.cross_entropy}[kind]
    ids = np.array([0, 3, -100])
    np.testing.assert_array_equal(kind()(Tensor(X), ids).numpy(), function(Tensor(X), ids).numpy())


def test_weights_are_saved_and_moved_and_stay_narrow(gpu):
    """As in PyTorch, they are in the state_dict; one that is None is not."""
    loss = nn.BCEWithLogitsLoss(pos_weight=WEIGHT)
    assert {name: tensor.dtype for name, tensor in loss.state_dict().items()} == {"pos_weight": np.float32}
    assert loss(Tensor(X, dtype=np.float32), P).dtype == np.float32
    assert loss.to(gpu).pos_weight.device == gpu
    given = Tensor(WEIGHT)
    assert nn.CrossEntropyLoss(given).weight is given
    assert list(nn.CrossEntropyLoss().state_dict()) == []


@pytest.mark.parametrize(("loss", "text"), [
    (nn.MSELoss(), "MSELoss(reduction='mean')"),
    (nn.HuberLoss("sum"), "HuberLoss(reduction='sum', delta=1.0)"),
    (nn.SmoothL1Loss(beta=0.5), "SmoothL1Loss(reduction='mean', beta=0.5)"),
    (nn.CrossEntropyLoss(label_smoothing=0.1), "CrossEntropyLoss(reduction='mean', label_smoothing=0.1)"),
    (nn.KLDivLoss("batchmean"), "KLDivLoss(reduction='batchmean', log_target=False)"),
    (nn.CosineSimilarity(-1), "CosineSimilarity(axis=-1, eps=1e-08)"),
])
def test_repr(loss, text):
    assert repr(loss) == text


@pytest.mark.parametrize("kind", [nn.MSELoss, nn.CrossEntropyLoss, nn.BCELoss, nn.KLDivLoss])
def test_a_reduction_that_does_not_exist_is_named_at_once(kind):
    with pytest.raises(ValueError, match=f"^{kind.__name__}: reduction must be .* got 'average'"):
        kind(reduction="average")


def test_two_spellings_of_an_axis():
    with pytest.raises(TypeError, match="CosineSimilarity: dim is another name for axis"):
        nn.CosineSimilarity(axis=1, dim=1)
