"""Graphs of any depth and width: no recursion, and no time that is quadratic in the size."""

import numpy as np

import minigrad as mg
from minigrad import Tensor, grad


def leaf(values):
    return Tensor(np.array(values, np.float64), requires_grad=True)


def test_a_chain_of_50000_operations_goes_backward_and_is_dropped():
    x = leaf([1.0])
    y = x
    for _ in range(50_000):
        y = y + 1
    y.sum().backward(retain_graph=True)
    np.testing.assert_array_equal(x.grad.numpy(), [1])
    np.testing.assert_array_equal(grad(y.sum(), x).numpy(), [1])
    del y  # the interpreter's stack must survive this


def test_a_deep_graph_that_was_never_used_is_dropped():
    y = leaf([1.0])
    for _ in range(50_000):
        y = -y
    del y


def test_a_sum_of_16000_terms():
    x = leaf([2.0, 3.0])
    total = x * 0
    for i in range(16_000):
        total = total + x * i
    total.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [16_000 * 15_999 / 2] * 2)


def test_one_operation_with_16000_operands():
    x = leaf([2.0, 3.0])
    mg.concatenate([x] * 16_000).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [16_000, 16_000])
