"""The activations as modules: each is the function of its name with its options kept."""

import copy
import math

import numpy as np
import pytest

from minigrad import Tensor, gradcheck, nn
from minigrad import functional as F

X = np.random.default_rng(0).normal(size=(2, 3, 4)) * 3

# text that the module prints: how to make it, and what it computes
MODULES = {
    "ReLU()": (nn.ReLU, F.relu),
    "ReLU6()": (nn.ReLU6, F.relu6),
    "GELU(approximate='none')": (nn.GELU, F.gelu),
    "GELU(approximate='tanh')": (lambda: nn.GELU("tanh"), lambda x: F.gelu(x, approximate="tanh")),
    "SiLU()": (nn.SiLU, F.silu),
    "Mish()": (nn.Mish, F.mish),
    "LeakyReLU(negative_slope=0.01)": (nn.LeakyReLU, F.leaky_relu),
    "LeakyReLU(negative_slope=0.2)": (lambda: nn.LeakyReLU(0.2), lambda x: F.leaky_relu(x, 0.2)),
    "ELU(alpha=1.0)": (nn.ELU, F.elu),
    "ELU(alpha=0.5)": (lambda: nn.ELU(alpha=0.5), lambda x: F.elu(x, 0.5)),
    "CELU(alpha=2.0)": (lambda: nn.CELU(2.0), lambda x: F.celu(x, 2.0)),
    "SELU()": (nn.SELU, F.selu),
    "Sigmoid()": (nn.Sigmoid, F.sigmoid),
    "LogSigmoid()": (nn.LogSigmoid, F.logsigmoid),
    "Hardsigmoid()": (nn.Hardsigmoid, F.hardsigmoid),
    "Tanh()": (nn.Tanh, F.tanh),
    "Hardtanh(min_val=-1.0, max_val=1.0)": (nn.Hardtanh, F.hardtanh),
    "Hardtanh(min_val=-2, max_val=0.5)": (lambda: nn.Hardtanh(-2, 0.5), lambda x: F.hardtanh(x, -2, 0.5)),
    "Softsign()": (nn.Softsign, F.softsign),
    "Softplus(beta=1.0, threshold=20.0)": (nn.Softplus, F.softplus),
    "Softplus(beta=2, threshold=3)": (lambda: nn.Softplus(2, 3), lambda x: F.softplus(x, 2, 3)),
    "Softmax(axis=-1)": (nn.Softmax, F.softmax),
    "Softmax(axis=1)": (lambda: nn.Softmax(dim=1), lambda x: F.softmax(x, 1)),
    "LogSoftmax(axis=-1)": (nn.LogSoftmax, F.log_softmax),
    "LogSoftmax(axis=0)": (lambda: nn.LogSoftmax(axis=0), lambda x: F.log_softmax(x, 0)),
    "Identity()": (lambda: nn.Identity(54, unused=True), lambda x: x),
}


@pytest.mark.parametrize("text", MODULES)
def test_a_module_is_its_function(text, device):
    make, function = MODULES[text]
    module = make()
    assert repr(module) == text
    assert dict(module.state_dict()) == {}
    x = Tensor(X, device=device, requires_grad=True)
    np.testing.assert_array_equal(module(x).numpy(), function(x).numpy())
    np.testing.assert_array_equal(copy.deepcopy(module).eval()(x).numpy(), function(x).numpy())
    assert gradcheck(module, x)


def test_relu_and_gelu_by_their_formulas(device):
    x = Tensor(X, device=device)
    phi = np.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))))(X)
    tanh = 0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)))
    np.testing.assert_array_equal(nn.ReLU()(x).numpy(), np.maximum(X, 0))
    np.testing.assert_allclose(nn.GELU()(x).numpy(), X * phi, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(nn.GELU("tanh")(x).numpy(), tanh, rtol=1e-12, atol=1e-14)


def test_identity_gives_the_tensor_itself():
    x = Tensor(X)
    assert nn.Identity()(x) is x


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: nn.GELU("sigmoid"), ValueError, "GELU: approximate must be 'none' or 'tanh', got 'sigmoid'"),
    (lambda: nn.Softplus(beta=0), ValueError, "Softplus: beta must not be 0"),
    (lambda: nn.CELU(0), ValueError, "CELU: alpha must not be 0"),
    (lambda: nn.Hardtanh(2, 1), ValueError, "Hardtanh: min_val 2 is above max_val 1"),
    (lambda: nn.Softmax(axis=1, dim=1), TypeError, "Softmax: dim is another name for axis; give one of them"),
])
def test_mistakes_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
