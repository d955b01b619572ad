"""Fused primitives under ``create_graph``: the composition is recorded in their place, and the pass goes on."""

import itertools

import numpy as np
import pytest

from minigrad import Tensor, exp, functional, fused, grad, tanh
from minigrad.gradcheck import gradcheck, gradgradcheck

RNG = np.random.default_rng(11)


def leaf(values):
    return Tensor(np.array(values, np.float64), requires_grad=True)


def random_leaf(*shape):
    return leaf(RNG.normal(size=shape))


def a_layer_norm():
    def run(x, weight, bias):
        return functional.layer_norm(x, weight, bias)
    return run, (random_leaf(2, 3, 4), random_leaf(4), random_leaf(4))


def an_attention():
    mask = np.array([[True, False, True, True], [False] * 4, [True] * 4])

    def run(query, key, value):
        return functional.scaled_dot_product_attention(query, key, value, mask)
    return run, (random_leaf(2, 3, 5), random_leaf(2, 4, 5), random_leaf(2, 4, 2))


def a_cross_entropy():
    targets = np.array([1, -100, 0, 3])

    def run(logits):
        return functional.cross_entropy(logits, targets, label_smoothing=0.1, reduction="none")
    return run, (random_leaf(4, 5),)


FUSED = [a_layer_norm, an_attention, a_cross_entropy]


@pytest.mark.parametrize("make", FUSED)
def test_expanded_primitives_against_finite_differences(make):
    function, inputs = make()
    gradcheck(function, inputs)
    gradgradcheck(function, inputs)


@pytest.mark.parametrize("make", FUSED)
def test_expanded_primitives_have_the_derivatives_of_their_compositions_to_third_order(make):
    function, inputs = make()

    def derivatives():
        y, found = function(*inputs), []
        for k in range(3):
            parts = grad((y * tanh(y)).sum() if k == 0 else y, inputs, create_graph=True)
            found.append([part.numpy() for part in parts])
            y = sum(((part * part).sum() for part in parts[1:]), (parts[0] * parts[0]).sum())
        return found

    ours = derivatives()
    with fused(False):
        theirs = derivatives()
    for one, other in zip(itertools.chain(*ours), itertools.chain(*theirs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


@pytest.mark.parametrize("make", FUSED)
def test_an_expansion_on_the_way_to_an_intermediate(make):
    """The expansion's own nodes are on the path although they did not exist when the path was found."""
    function, inputs = make()
    x, rest = inputs[0], inputs[1:]
    for first in (False, True):  # the intermediate before or after the fused primitive
        h = x * x if first else x
        out = function(h, *rest)
        middle = h if first else out
        loss = (out * out * exp(out)).sum()
        got = grad(loss, middle, create_graph=True)
        with fused(False):
            h2 = x * x if first else x
            out2 = function(h2, *rest)
            expected = grad((out2 * out2 * exp(out2)).sum(), h2 if first else out2, create_graph=True)
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(grad((got * got).sum(), x).numpy(), grad((expected * expected).sum(), x).numpy(),
                                   rtol=1e-9, atol=1e-12)


def test_a_fused_primitive_twice_in_one_graph():
    x, weight = random_leaf(3, 4), random_leaf(4)

    def run():
        y = functional.layer_norm(functional.layer_norm(x, weight) + x, weight)
        first = grad((y**3).sum(), [x, weight], create_graph=True)
        return [g.numpy() for g in grad(sum((g * g).sum() for g in first), [x, weight])]

    ours = run()
    with fused(False):
        for one, other in zip(ours, run(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_only_some_inputs_of_a_fused_primitive_are_asked_for():
    function, (x, weight, bias) = a_layer_norm()
    y = (function(x, weight, bias) ** 2).sum()
    (gw,) = grad(y, [weight], create_graph=True)
    (gx,) = grad(gw.sum(), [x])
    with fused(False):
        y = (function(x, weight, bias) ** 2).sum()
        (expected,) = grad(grad(y, [weight], create_graph=True)[0].sum(), [x])
    np.testing.assert_allclose(gx.numpy(), expected.numpy(), rtol=1e-10, atol=1e-13)
