"""fused(False) and tapping: everything as small operations, and a visitor who sees each step."""

import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, functional, tap, tapping
from minigrad.functional.compositions import composing


def leaf(*values):
    return Tensor(list(values), requires_grad=True)


def test_a_visitor_sees_the_steps_of_compositions_in_order():
    q, k, v = (Tensor(np.random.default_rng(i).normal(size=(2, 3)), requires_grad=True) for i in range(3))
    seen = {}

    def visitor(name, tensor):
        if tensor.requires_grad:
            tensor.retain_grad()
        seen[name] = tensor
        return tensor

    with tapping(visitor):
        out = functional.scaled_dot_product_attention(q, k, v.numpy(), np.tril(np.ones((2, 2), bool)))
    functional.scaled_dot_product_attention(k, k, v)  # outside of the block
    assert list(seen) == ["queries", "keys", "values", "scores", "scaled", "masked", "shifted", "exponentials", "total",
                          "weights", "context"]
    np.testing.assert_array_equal(seen["context"].numpy(), out.numpy())
    out.sum().backward()
    np.testing.assert_allclose(seen["scores"].grad.numpy(), seen["scaled"].grad.numpy() / np.sqrt(3), rtol=1e-14)
    np.testing.assert_array_equal(seen["context"].grad.numpy(), np.ones((2, 3)))


def test_blocks_nest_and_the_innermost_sees_the_taps():
    outer, inner = [], []
    x = leaf(1.0)

    def fails():
        tap("b", x)
        raise KeyError

    with tapping(lambda name, t: outer.append(name)):  # it returns nothing, and leaves the tensors
        assert tap("a", x) is x
        with pytest.raises(KeyError), tapping(lambda name, t: inner.append(name) or t):
            fails()
        tap("c", x)
    assert tap("d", x) is x
    assert (outer, inner) == (["a", "c"], ["b"])
    assert not composing()


def test_neither_another_thread_nor_a_pass_of_its_own_shows_steps_to_a_visitor():
    """A graph that was recorded outside is expanded without telling the visitor, who might change it."""
    x = Tensor(np.array([[1.0, 2.0, 4.0]]), requires_grad=True)
    y = (functional.layer_norm(x) ** 3).sum()
    seen = []
    with tapping(lambda name, t: seen.append(name) or t):
        mg.grad(y, x, create_graph=True)
        thread = threading.Thread(target=lambda: functional.softmax(x))
        thread.start()
        thread.join()
    assert seen == []
