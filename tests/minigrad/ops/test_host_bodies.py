"""The bodies that run by default in place of definitions: the same values and gradients, from faster arithmetic."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, ops
from minigrad.engine.primitive import only_definitions
from minigrad.kernels.host.indexing import add_at

RANDOM = np.random.default_rng(0)
LARGE = RANDOM.standard_normal((80, 64))  # from 4096 elements on, products take the place of choices
LARGE[::7, ::5] = 0.5
OTHER = RANDOM.permutation(LARGE)
IDS = RANDOM.integers(-80, 80, (30, 2))

CASES = {
    "where": lambda x, y: mg.where(x > y, x, y),
    "relu": lambda x, y: mg.relu(x) + y,
    "maximum": mg.maximum,
    "minimum": mg.minimum,
    "clip": lambda x, y: mg.clip(x, y, 0.5),
    "clip from above": lambda x, y: mg.clip(x, None, y),
    "nan_to_num": lambda x, y: mg.nan_to_num(x) * y,
    "max": lambda x, y: mg.max(x, axis=1) + mg.max(y, axis=0)[:1],
    "max of many rows": lambda x, y: mg.max(x.reshape(-1, 1), axis=1) * y.reshape(-1),
    "min": lambda x, y: mg.min(x, axis=0, keepdims=True) * y,
    "rows": lambda x, y: x[IDS] * y[:2],
    "rows into zeros": lambda x, y: ops.put_into_zeros(x[:60].reshape(30, 2, 64), IDS, (80, 64)) * y,
    "one matrix for all rows": lambda x, y: x.reshape(4, 20, 64) @ y[:64],
}


@pytest.mark.parametrize("case", CASES)
def test_bodies_equal_definitions(case):
    def results():
        x, y = Tensor(LARGE, requires_grad=True), Tensor(OTHER, requires_grad=True)
        out = CASES[case](x, y)
        g = np.cos(np.arange(out.size)).reshape(out.shape)
        return [out.data, *[gradient.data for gradient in mg.grad(out, [x, y], g)]]

    found = results()
    with only_definitions():
        expected = results()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("function", [mg.relu, lambda x: mg.where(x.data > 0, x, 0.0), lambda x: mg.clip(x, 0, 1)])
def test_an_infinite_gradient_makes_no_nan(function):
    """A product of 0 and infinity is NaN; where the condition does not hold, the gradient is 0."""
    x = Tensor(-np.abs(LARGE) - 1, requires_grad=True)
    function(x).backward(np.full(LARGE.shape, np.inf))
    np.testing.assert_array_equal(x.grad.data, np.zeros_like(LARGE))


@pytest.mark.parametrize(
    ("shape", "index", "values_shape"),
    [
        ((5, 3), np.array([4, -5, 4, 0, -1]), (5, 3)),
        ((5, 3), np.array([[1, 1], [2, -4]], np.int32), (2, 2, 3)),
        ((4, 2, 3), np.array([3, 0, 3]), (2, 3)),
        ((4, 3), np.array(2), (3,)),
        ((4, 3), np.array([], np.int64), (0, 3)),
        ((4, 0), np.array([1, 1]), (2, 0)),
        ((4, 3), np.array([True, False, True, True]), (3, 3)),
        ((4, 3), (np.array([0, 0, 3]), slice(1, None)), (3, 2)),
        ((4,), np.array([0, 0, 3]), (3,)),
    ],
)
@pytest.mark.parametrize(("dtype", "order"), [("f4", "C"), ("f8", "F"), ("f2", "C"), ("i8", "C")])
def test_add_at_on_the_host_is_numpys(shape, index, values_shape, dtype, order):
    random = np.random.default_rng(0)
    expected = (8 * random.standard_normal(shape)).astype(dtype, order=order)
    values = (8 * random.standard_normal(values_shape)).astype(dtype)
    result = expected.copy(order)
    np.add.at(expected, index, values)
    add_at(result, index, values)
    np.testing.assert_allclose(result, expected, rtol=0, atol={"f4": 2e-6, "f8": 4e-15}.get(dtype, 0))
    assert result.dtype == dtype


def test_add_at_of_one_value_to_many_rows():
    array = np.zeros((3, 2))
    add_at(array, np.array([2, -1, 0]), 1.5)
    np.testing.assert_array_equal(array, [[1.5, 1.5], [0, 0], [3, 3]])


@pytest.mark.parametrize("index", [4, -5])
def test_add_at_refuses_rows_out_of_range(index):
    with pytest.raises(IndexError):
        add_at(np.zeros((4, 3)), np.array([index]), 1.0)
