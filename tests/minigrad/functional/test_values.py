"""Values by formulas. Derivatives: see test_every_functional.py; forms of ids and targets: ops/test_given_forms.py."""

import math

import numpy as np
import pytest
import scipy.special

from minigrad import Tensor
from minigrad import functional as F

from tests.minigrad.ops.row import function, table


def draw(*shape):
    return np.random.default_rng([7, *shape]).normal(size=shape) * 2


NAMES = {
    "np": np, "special": scipy.special, "X": draw(3, 4), "DEEP": draw(2, 3, 4), "OTHER": draw(2, 3, 4) / 2,
    "W": draw(5, 4), "B": draw(5), "ROW": draw(4), "TARGET": draw(3, 4) / 3,
    "IDS": np.array([[0, 3], [3, 3]]),
    "norm": lambda x: np.sqrt(x.var(-1, keepdims=True) + 1e-5),
    "moment": lambda x, order=2: (x**order).mean(-1, keepdims=True),
    "log_p": lambda x: scipy.special.log_softmax(x, -1),
    "smooth": lambda log_p, ids, e: (e - 1) * log_p[np.arange(len(ids)), ids] - e * log_p.mean(-1),
}
FORMULAS = """
    softmax(x, axis=1)              lambda x: special.softmax(x, 1)             [DEEP]
    log_softmax(x, axis=0)          lambda x: special.log_softmax(x, 0)         [DEEP]
    silu(x)                         lambda x: x * special.expit(x)              [X]
    gelu(x)                         lambda x: x * special.ndtr(x)               [X]
    gelu(x, approximate="tanh")     lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))     [X]
    linear(x, y, z)                 lambda x, y, z: x @ y.T + z                 DEEP, W, B
    layer_norm(x, y, z)             lambda x, y, z: (x - moment(x, 1)) / norm(x) * y + z   X, ROW, ROW / 2
    rms_norm(x, y, 0.1)             lambda x, y: x / np.sqrt(moment(x) + 0.1) * y       X, ROW
    mse_loss(x, y)                  lambda x, y: ((x - y) ** 2).mean()          DEEP, OTHER
    mse_loss(x, y, "sum")           lambda x, y: ((x - y) ** 2).sum()           X, TARGET
    embedding(IDS, x)               lambda x: x[IDS]                            [W]
    one_hot(x, 5)                   lambda x: np.eye(5, dtype=int)[x]           [IDS]
    one_hot(x)                      lambda x: np.eye(4, dtype=int)[x]           [IDS]
    one_hot(x, 3)                   lambda x: np.eye(3, dtype=int)[x]           [IDS[:0]]
    cross_entropy(x, [1, 3, 0])                 lambda x: -log_p(x)[[0, 1, 2], [1, 3, 0]].mean()        [30 * X]
    cross_entropy(x, [1, -1, 0], -1, "sum")     lambda x: -log_p(x)[[0, 2], [1, 0]].sum()               [X]
    cross_entropy(x, [1, 0, 2], 0, "none")      lambda x: -log_p(x)[[0, 1, 2], [1, 0, 2]] * [1, 0, 1]   [X]
    cross_entropy(x, [1, -100, 0], label_smoothing=0.2)     lambda x: smooth(log_p(x)[[0, 2]], [1, 0], 0.2).mean()  [X]
    cross_entropy(x, [-100] * 3)                lambda x: np.zeros(())                                  [X]
    cross_entropy(x, IDS[:0, 0])                lambda x: np.zeros(())                                  [X[:0]]
    nll_loss(x, [1, -1, 0], -1, "sum")          lambda x: -x[[0, 2], [1, 0]].sum()                      [X]
    nll_loss(x, [1, -100, 0])                   lambda x: -x[[0, 2], [1, 0]].mean()                     [X]
"""


@pytest.mark.parametrize(("call", "formula", "arrays"), table(FORMULAS, NAMES))
def test_values(call, formula, arrays, form, device):
    out = function(call, {**vars(F), **NAMES})(*[Tensor(array, device=device) for array in arrays])
    expected = formula(*arrays)
    assert (out.device, out.dtype) == (device, expected.dtype)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rms_norm_takes_its_eps_from_the_dtype(dtype):
    x = np.full((1, 4), 0.01, dtype)
    expected = 0.01 / math.sqrt(1e-4 + np.finfo(dtype).eps)
    np.testing.assert_allclose(F.rms_norm(Tensor(x)).numpy(), expected, rtol=3e-3 if dtype == np.float16 else 1e-6)


# --- Ids

TABLE = np.arange(15.0).reshape(5, 3)


@pytest.mark.parametrize("padding_idx", [2, -3])
def test_the_padding_row_is_read_but_receives_nothing(form, device, padding_idx):
    """Not even from a gradient that is not finite."""
    weight = Tensor(TABLE, device=device, requires_grad=True)
    out = F.embedding([2, 1, 2], weight, padding_idx)
    assert out.tolist() == TABLE[[2, 1, 2]].tolist()
    out.backward(Tensor(np.array([[np.nan, np.inf, 1], [5, 5, 5], [5, 5, 5]]), device=device))
    np.testing.assert_array_equal(weight.grad.numpy(), [[0] * 3, [5] * 3, *[[0] * 3] * 3])
