"""embedding, linear and one_hot: which row gets which gradient, in every form of ids."""

import numpy as np
import pytest

from minigrad import Tensor
from minigrad import functional as F

TABLE = np.arange(15.0).reshape(5, 3)
IDS = [[[0, 3], [3, 3]], np.array([2, 0], np.uint8), np.array(2), Tensor([1, 1])]


def table(device="cpu"):
    return Tensor(TABLE, device=device, requires_grad=True)


@pytest.mark.parametrize("ids", [*IDS, np.zeros(0, np.int64)], ids=repr)
def test_values_and_gradients(form, device, ids):
    host = np.asarray(ids.numpy() if isinstance(ids, Tensor) else ids)
    for given in (ids, Tensor(host, device=device)):
        weight = table(device)
        out = F.embedding(given, weight)
        assert out.device == device
        np.testing.assert_array_equal(out.numpy(), TABLE[host])
        g = np.random.default_rng(0).normal(size=out.shape)
        out.backward(Tensor(g, device=device))
        expected = np.zeros_like(TABLE)
        np.add.at(expected, host, g)
        np.testing.assert_allclose(weight.grad.numpy(), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("padding_idx", [2, -3])
def test_the_padding_row_is_read_but_receives_nothing(form, device, padding_idx):
    """Not even from a gradient that is not finite."""
    weight = table(device)
    out = F.embedding([[2, 1], [2, 2]], weight, padding_idx)
    np.testing.assert_array_equal(out.numpy()[0, 0], TABLE[2])
    out.backward(Tensor(np.array([[[np.nan, np.inf, 1], [5, 5, 5]], [[5, 5, 5], [5, 5, 5]]]), device=device))
    np.testing.assert_array_equal(weight.grad.numpy(), [[0] * 3, [5] * 3, *[[0] * 3] * 3])


def test_linear_is_x_w_transposed_plus_b(form):
    x, w, b = (np.random.default_rng(i).normal(size=shape) for i, shape in enumerate([(2, 3, 4), (5, 4), (5,)]))
    np.testing.assert_allclose(F.linear(Tensor(x), Tensor(w), Tensor(b)).numpy(), x @ w.T + b, rtol=1e-13)


@pytest.mark.parametrize("ids", IDS, ids=repr)
def test_one_hot(ids, device):
    host = np.asarray(ids.numpy() if isinstance(ids, Tensor) else ids)
    for given in (ids, Tensor(host, device=device)):
        vectors = F.one_hot(given, 4)
        assert vectors.dtype == np.int64
        np.testing.assert_array_equal(vectors.numpy(), np.eye(4)[host])
        assert vectors.device == (given.device if isinstance(given, Tensor) else "cpu")
        np.testing.assert_array_equal(F.one_hot(given).numpy(), np.eye(host.max() + 1)[host])
    assert F.one_hot(np.zeros((2, 0), int), 3).shape == F.one_hot([[], []], 3).shape == (2, 0, 3)
