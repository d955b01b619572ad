"""Operations on no elements and on one: values, shapes and dtypes of results and gradients."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F

from tests.minigrad.ops.row import host

FUNCTIONS = {  # of a matrix, with NumPy's result
    "sum over 0": (lambda x: mg.sum(x, 0), lambda x: np.sum(x, 0)),
    "mean over 1": (lambda x: mg.mean(x, 1, keepdims=True), lambda x: np.mean(x, 1, keepdims=True)),
    "logsumexp": (mg.logsumexp, lambda x: np.logaddexp.reduce(x, None)),
    "logsumexp over 0": (lambda x: mg.logsumexp(x, 0), lambda x: np.logaddexp.reduce(x, 0)),
    "getitem of nothing": (lambda x: x[[]], lambda x: x[:0]),
    "getitem of nothing, nested": (lambda x: x[[[]]], lambda x: x[None, :0]),
    "getitem of nothing, twice": (lambda x: x[[], [[]]], lambda x: x[:0, :0].reshape(1, 0)),
    "getitem of no column": (lambda x: x[:, [[]]], lambda x: x[:, None, :0]),
    "embedding of nothing": (lambda x: F.embedding([[]], x), lambda x: x[None, :0]),
    "take": (lambda x: x.take([0, 0], axis=1), lambda x: x[:, [0, 0]]),
    "gather": (lambda x: x.gather(1, np.zeros((len(x), 2), int)), lambda x: x[:, [0, 0]]),
    "norm": (lambda x: mg.norm(x, axis=0), lambda x: np.linalg.norm(x, axis=0)),
    "sort": (lambda x: mg.sort(x, 0), lambda x: np.sort(x, 0)),
    "flatten": (lambda x: x[..., None].flatten(1), lambda x: x),
    "repeat by counts": (lambda x: mg.repeat(x, np.arange(len(x)), 0), lambda x: np.repeat(x, np.arange(len(x)), 0)),
    "tile": (lambda x: mg.tile(x, (2, 1)), lambda x: np.tile(x, (2, 1))),
}


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_matrices_of_no_row_and_of_one(name, rows, device):
    function, reference = FUNCTIONS[name]
    array = np.array([[0.5, 1.5, 1.0]])[:rows]
    x = Tensor(array, device=device, requires_grad=True)
    out = function(x)
    expected = reference(array)
    assert out.shape == expected.shape
    np.testing.assert_allclose(host(out), expected, rtol=1e-14)
    start = Tensor(np.ones(out.shape), device=device)
    assert out.dtype == np.float64
    if out.requires_grad:
        (gradient,) = mg.grad(out, [x], start, create_graph=True)
        assert (gradient.shape, gradient.dtype) == (array.shape, np.float64)
