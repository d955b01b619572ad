"""RMSNorm against its formula, and what LayerNorm and RMSNorm learn. (LayerNorm's formula: test_layers.py.)"""

import numpy as np
import pytest

from minigrad import Tensor, nn
from minigrad.device import to_numpy

X = np.random.default_rng(82).normal(size=(2, 4, 6))


@pytest.mark.parametrize("affine", [True, False])
def test_rms_norm(affine, device):
    layer = nn.RMSNorm(6, eps=1e-3, elementwise_affine=affine).to(device, dtype=np.float64)
    scale = np.arange(1.0, 7.0) if affine else 1.0
    if affine:
        layer.weight.copy_(scale)
    out = layer(Tensor(X, device=device, requires_grad=True))
    normal = X / np.sqrt((X**2).mean(-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(to_numpy(out.data), normal * scale, rtol=1e-12)
    if affine:
        out.sum().backward()
        np.testing.assert_allclose(to_numpy(layer.weight.grad.data), normal.sum((0, 1)), rtol=1e-11, atol=1e-13)


def test_rms_norm_begins_as_the_plain_one():
    layer = nn.RMSNorm(6)
    assert layer.eps is None
    assert {name: tensor.shape for name, tensor in layer.state_dict().items()} == {"weight": (6,)}
    np.testing.assert_array_equal(layer.weight.data, np.ones(6, np.float32))


def test_layer_norm_that_learns_nothing():
    layer = nn.LayerNorm(6, 1e-3, False)
    assert list(layer.state_dict()) == []
    expected = (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(layer(Tensor(X)).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(("layer", "text"), [
    (nn.RMSNorm(4), "RMSNorm(4, eps=None, elementwise_affine=True)  # 4 parameters"),
    (nn.RMSNorm(4, 0.1, False), "RMSNorm(4, eps=0.1, elementwise_affine=False)"),
    (nn.LayerNorm(4, elementwise_affine=False), "LayerNorm(4, eps=1e-05, elementwise_affine=False)"),
])
def test_repr(layer, text):
    assert repr(layer) == text


@pytest.mark.parametrize(("size", "error", "said"), [(0, ValueError, "at least 1, got 0"),
                                                     ((3, 4), TypeError, "integer, got tuple")])
def test_sizes(size, error, said):
    with pytest.raises(error, match=f"RMSNorm: normalized_shape must be .*{said}"):
        nn.RMSNorm(size)
