"""What the tests of minigrad.func differentiate, and how they compare."""

import numpy as np

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import host


def normal(*shape, seed=0, device="cpu"):
    return Tensor(np.random.default_rng([seed, *shape]).normal(size=shape), device=device)


A = np.random.default_rng(3).normal(size=(4, 3))


def curve(x):
    """From (3,) to (4,): A tanh x."""
    return Tensor(A, device=x.device) @ mg.tanh(x)


def close(found, expected, **tolerance):
    np.testing.assert_allclose(host(found), expected, **(tolerance or {"rtol": 1e-12, "atol": 1e-14}))
