"""Operands of different shapes: the result is NumPy's, and each gradient is summed back to its own operand's shape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import host, normal, positive

OPS = {
    "add": (lambda x, y: x + y, np.add),
    "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply),
    "div": (lambda x, y: x / y, np.divide),
    "power": (lambda x, y: x ** y, np.power),
    "maximum": (mg.maximum, np.maximum),
    "minimum": (mg.minimum, np.minimum),
    "where": (lambda x, y: mg.where(x < y, x * x, y), lambda x, y: np.where(x < y, x * x, y)),
}
SHAPES = [
    ((), ()), ((), (3,)), ((1,), (3,)), ((1,), ()), ((1, 1), (1,)),
    ((2, 3), ()), ((2, 3), (3,)), ((2, 3), (1,)), ((2, 3), (2, 1)), ((2, 3), (1, 3)), ((2, 3), (1, 1)),
    ((2, 1), (1, 3)), ((2, 1), (3,)), ((2, 1, 3), (2, 1)), ((1, 2, 1), (2, 1, 3)),
    ((2, 2, 3), (2, 3)), ((2, 1, 1), (1, 3)),
    ((0,), ()), ((0,), (1,)), ((2, 0), (2, 1)), ((0, 3), (3,)), ((2, 1, 0), (3, 1)),
]
BOTH_WAYS = SHAPES + [(y, x) for x, y in SHAPES if x != y]


@pytest.mark.parametrize("shapes", BOTH_WAYS, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_broadcast_operands(name, shapes, device):
    op, reference = OPS[name]
    x, y = positive(*shapes[0]), positive(*shapes[1], seed=1)
    tensors = [Tensor(x, device=device, requires_grad=True), Tensor(y, device=device, requires_grad=True)]
    out = op(*tensors)
    np.testing.assert_allclose(host(out), reference(x, y), rtol=1e-14)
    gradients = mg.grad(out.sum(), tensors)
    assert [gradient.shape for gradient in gradients] == list(shapes)
    assert mg.gradcheck(op, tensors, atol=1e-9)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 1)), ((), (3,)), ((2, 1), (1, 3)), ((2, 1, 3), (2, 1))], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_second_gradient(name, shapes, device):
    tensors = [Tensor(positive(*shape, seed=i), device=device, requires_grad=True) for i, shape in enumerate(shapes)]
    assert mg.gradgradcheck(OPS[name][0], tensors, atol=1e-9, rtol=1e-6)


THREE = [((2, 1), (3,), ()), ((), (2, 3), (1, 3)), ((3,), (1,), (2, 1)), ((1,), (), ())]


@pytest.mark.parametrize("shapes", THREE, ids=str)
def test_where_broadcasts_all_three(shapes, device):
    condition, x, y = normal(*shapes[0]) > 0, normal(*shapes[1]), normal(*shapes[2], seed=1)
    chosen = Tensor(condition, device=device)
    tensors = [Tensor(x, device=device, requires_grad=True), Tensor(y, device=device, requires_grad=True)]
    np.testing.assert_array_equal(host(mg.where(chosen, *tensors)), np.where(condition, x, y))
    assert mg.gradcheck(lambda x, y: mg.where(chosen, x, y), tensors, atol=1e-9)


@settings(derandomize=True, database=None, deadline=None, max_examples=60)
@given(st.sampled_from(sorted(OPS)), mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=3, max_dims=4))
def test_any_shapes_that_broadcast(name, drawn):
    """With ones for a gradient, the gradient of x in x + y is how often each of its elements was used."""
    op, reference = OPS[name]
    shape_x, shape_y = drawn.input_shapes
    x, y = positive(*shape_x), positive(*shape_y, seed=1)
    tensors = [Tensor(x, requires_grad=True), Tensor(y, requires_grad=True)]
    out = op(*tensors)
    assert out.shape == drawn.result_shape
    np.testing.assert_allclose(host(out), reference(x, y), rtol=1e-14)
    g = normal(*drawn.result_shape, seed=2)
    for found, expected in zip(mg.grad(out, tensors, g), broadcast_by_hand(op, x, y, g), strict=True):
        assert found.shape == expected.shape
        np.testing.assert_allclose(host(found), expected, rtol=1e-12, atol=1e-13)


def broadcast_by_hand(op, x, y, g):
    """The gradients by way of operands that NumPy has repeated, where nothing broadcasts; then summed."""
    whole = [Tensor(np.broadcast_to(a, g.shape), requires_grad=True) for a in (x, y)]
    for array, gradient in zip((x, y), mg.grad(op(*whole), whole, g), strict=True):
        padded = (1,) * (g.ndim - array.ndim) + array.shape
        axes = tuple(i for i, (n, m) in enumerate(zip(padded, g.shape, strict=True)) if n == 1 != m)
        yield host(gradient).sum(axis=axes, keepdims=True).reshape(array.shape)


@settings(derandomize=True, database=None, deadline=None, max_examples=60)
@given(mutually_broadcastable_shapes(signature="(n,k),(k,m)->(n,m)", max_side=3, min_side=0, max_dims=3))
def test_any_batches_that_broadcast_in_matmul(drawn):
    (shape_x, shape_y), result = drawn.input_shapes, drawn.result_shape
    x, y, g = normal(*shape_x), normal(*shape_y, seed=1), normal(*result, seed=2)
    tensors = [Tensor(x, requires_grad=True), Tensor(y, requires_grad=True)]
    out = tensors[0] @ tensors[1]
    np.testing.assert_allclose(host(out), x @ y, rtol=1e-13, atol=1e-13)
    whole = np.broadcast_to(x, (*result[:-2], *shape_x[-2:])), np.broadcast_to(y, (*result[:-2], *shape_y[-2:]))
    expected = np.einsum("...nm,...km->...nk", g, whole[1]), np.einsum("...nk,...nm->...km", whole[0], g)
    for array, found, full in zip((x, y), mg.grad(out, tensors, g), expected, strict=True):
        padded = (1,) * (full.ndim - array.ndim) + array.shape
        axes = tuple(i for i, (n, m) in enumerate(zip(padded, full.shape, strict=True)) if n == 1 != m)
        np.testing.assert_allclose(host(found), full.sum(axis=axes, keepdims=True).reshape(array.shape), rtol=1e-12,
                                   atol=1e-12)
