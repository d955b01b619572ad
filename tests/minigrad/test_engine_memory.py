"""Graphs hold no reference cycles, and may be of any depth and width. Run with the collector off."""

import gc
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, func, grad, nn
from minigrad import functional as F
from minigrad.engine.node import Node, TensorBase


@pytest.fixture(autouse=True)
def collector_off():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive():
    return sum(issubclass(type(x), (Node, TensorBase)) for x in gc.get_objects())  # isinstance asks proxies, too


def leaf(shape):
    return Tensor(np.random.default_rng(0).normal(size=shape), requires_grad=True)


def forward_only(x, w):
    return mg.exp(x @ w).sum()


def used(x, w):
    h = x * 1
    h.register_hook(lambda g: None)
    h.retain_grad()
    loss = forward_only(h, w)
    loss.backward()
    x.grad = w.grad = None
    return loss


def second_order(x, w):
    (first,) = grad(forward_only(x, w), [x], create_graph=True)
    return grad((first * first).sum(), [x, w])


def expanded(x, w):
    out = F.scaled_dot_product_attention(F.layer_norm(x), w.T, w.T, is_causal=True)
    (first,) = grad(out.sum(), [x], create_graph=True)
    return grad((first * first).sum(), x)


def checkpointed(x, w):
    func.checkpoint(forward_only, x, w).backward()
    x.grad = w.grad = None
    return func.checkpoint(forward_only, x, w)


def hooked(x, w):
    relu = nn.ReLU()
    relu.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    relu(x).sum().backward()
    x.grad = None
    return relu(x)


def failing(x, w):
    y = (x @ w).sum()
    y.backward()
    x.grad = w.grad = None
    try:
        y.backward()
    except RuntimeError:
        return y
    raise AssertionError("the second pass must fail")


BUILDS = [forward_only, used, second_order, expanded, checkpointed, hooked, failing]


def test_no_tensor_or_node_outlives_1000_dropped_graphs():
    x, w = leaf((3, 4)), leaf((4, 4))
    for build in BUILDS:
        build(x, w)  # what is made once: plans, imports
    before = alive()
    for i in range(1000):
        BUILDS[i % len(BUILDS)](x, w)
    assert alive() == before


def test_an_output_dies_with_its_last_reference_and_takes_its_graph_along():
    x = leaf((3,))
    y = mg.exp(x)
    z = y * 2
    node = weakref.ref(y._node)
    tensor = weakref.ref(y)
    del y
    assert tensor() is None  # the graph holds nodes, not the tensors they made
    assert node() is not None
    del z
    assert node() is None


# --- No recursion, and no time that is quadratic in the size


def test_a_chain_of_50000_operations_goes_backward_and_is_dropped():
    y = x = leaf((1,))
    for _ in range(50_000):
        y = y + 1
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == grad(y.sum(), x).tolist() == [1]
    del y  # the interpreter's stack must survive this


def test_a_sum_of_16000_terms():
    x = leaf((2,))
    total = x * 0
    for i in range(16_000):
        total = total + x * i
    total.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [16_000 * 15_999 / 2] * 2)
