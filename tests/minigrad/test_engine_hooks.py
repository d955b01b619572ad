"""Hooks on tensors: they see a gradient once, complete; what they return goes on; nothing they do reaches others."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import leaf


def test_what_a_hook_returns_goes_on():
    x = leaf([1.0, 2.0])
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: -g)
    handle = x.register_hook(lambda g: g * 5)
    handle.remove()
    handle.remove()
    with x.register_hook(lambda g: g * 7):
        pass
    y.sum().backward(retain_graph=True)
    assert y.grad.tolist() == [11.0, 11.0]
    assert x.grad.tolist() == [-33.0, -33.0]
    y.sum().backward()  # the leaf's hook sees the gradient of this pass, not the sum of both
    assert x.grad.tolist() == [-66.0, -66.0]


def test_grad_runs_hooks_once_also_for_an_input_that_is_given_twice():
    """What they return is cast to the dtype of their tensor."""
    x, seen = Tensor([1.0, 2.0], requires_grad=True), []
    y = x * 3
    y.register_hook(lambda g: g.astype(np.float64) * 10)
    x.register_hook(lambda g: seen.append(1) or g + 1)
    gy, gx, again = mg.grad(y.sum(), [y, x, x])
    assert seen == [1]
    assert gy.tolist() == [10.0, 10.0]
    assert gx.tolist() == again.tolist() == [31.0, 31.0]
    assert gy.dtype == gx.dtype == np.float32
    assert not np.shares_memory(gx.data, again.data)


def test_a_hook_is_differentiated_where_the_pass_is_recorded():
    x = leaf([2.0])
    y = x * x
    y.register_hook(lambda g: g * x)
    first = mg.grad(y, x, create_graph=True)
    assert (first.tolist(), mg.grad(first, x).tolist()) == ([8.0], [8.0])


def test_a_hook_that_writes_reaches_nobody():
    """One gradient array goes to both operands of an addition; a hook that spoils what it was given spoils a copy."""
    x, y = leaf([1.0]), leaf([1.0])

    def spoil(g):
        g[...] = 100.0

    x.register_hook(spoil)
    total = x + y
    total.register_hook(spoil)
    total.sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([1.0], [1.0])


@pytest.mark.parametrize(("returned", "said"), [(mg.sum, r"\(2,\), got shape \(\)"), (lambda g: 3.0, "got float")])
def test_what_a_hook_may_not_return(returned, said):
    x = leaf([1.0, 2.0])
    x.register_hook(returned)
    with pytest.raises(TypeError, match=f"tensor hook .*{said}"):
        (x * 1).sum().backward()
    assert x.grad is None


def test_a_pass_that_fails_leaves_no_gradient():
    @mg.primitive
    def fails(x):
        return x * 1

    def rule(g):
        raise ArithmeticError("in the rule")

    fails.gradient(x=rule)
    x = leaf([1.0])
    z = fails(x) * 2
    z.retain_grad()
    with pytest.raises(ArithmeticError, match="in the rule"):
        z.sum().backward()
    assert z.grad is None
    assert x.grad is None
    with pytest.raises(RuntimeError, match="ended by an error"):
        z.sum().backward()
