"""Operands of different shapes: the result is NumPy's, and each gradient is summed back to its own operand's shape."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import host, normal, positive
from tests.minigrad.ops.rows import BINARY

OPS = {
    **BINARY,
    "where": (lambda x, y: mg.where(x < y, x * x, y), lambda x, y: np.where(x < y, x * x, y)),
    "clip": (lambda x, y: mg.clip(x, y, y + 0.5), lambda x, y: np.clip(x, y, y + 0.5)),
}
SHAPES = [eval(pair.strip()) for pair in """
    (), (); (), (3,); (1,), (3,); (1, 1), (1,); (2, 3), (3,); (2, 3), (2, 1); (2, 3), (1, 1); (2, 1), (1, 3)
    (1, 2, 1), (2, 1, 3); (2, 1, 3, 1), (2, 1, 3); (0,), (); (2, 0), (2, 1); (0, 3), (3,)
""".strip().replace("\n", ";").split(";")]  # noqa: S307 - of our own writing
BOTH_WAYS = SHAPES + [(y, x) for x, y in SHAPES if x != y]


def summed_to(full, shape):
    """`full`, summed over the axes along which an array of `shape` was repeated."""
    padded = (1,) * (full.ndim - len(shape)) + shape
    axes = tuple(i for i, (n, m) in enumerate(zip(padded, full.shape, strict=True)) if n == 1 != m)
    return full.sum(axis=axes, keepdims=True).reshape(shape)


@pytest.mark.parametrize("name", OPS)
def test_broadcast_operands(name, device):
    """The gradients are those of operands that NumPy has repeated, where nothing broadcasts; then summed."""
    op, reference = OPS[name]
    for shapes in BOTH_WAYS:
        x, y = positive(*shapes[0]), positive(*shapes[1], seed=1)
        tensors = [Tensor(array, device=device, requires_grad=True) for array in (x, y)]
        out = op(*tensors)
        np.testing.assert_allclose(host(out), reference(x, y), rtol=1e-14, atol=1e-15)
        g = normal(*out.shape, seed=2)
        whole = [Tensor(np.broadcast_to(array, g.shape), requires_grad=True) for array in (x, y)]
        expected = mg.grad(op(*whole), whole, g)
        for found, full, shape in zip(mg.grad(out, tensors, Tensor(g, device=device)), expected, shapes, strict=True):
            assert found.shape == shape
            np.testing.assert_allclose(host(found), summed_to(host(full), shape), rtol=1e-12, atol=1e-13)
