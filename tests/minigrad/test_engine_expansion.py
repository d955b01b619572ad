"""Fused primitives under ``create_graph``: the composition is recorded in their place, and the pass goes on."""

import itertools

import numpy as np
import pytest

from minigrad import Tensor, exp, functional, fused, grad, tanh

RNG = np.random.default_rng(11)
MASK = np.array([[True, False, True, True], [False] * 4, [True] * 4])
TARGETS = np.array([1, -100, 0, 3])

FUSED = {
    "layer norm": (functional.layer_norm, (2, 3, 4), (4,), (4,)),
    "attention": (lambda query, key, value: functional.scaled_dot_product_attention(query, key, value, MASK),
                  (2, 3, 5), (2, 4, 5), (2, 4, 2)),
    "cross entropy": (lambda logits: functional.cross_entropy(logits, TARGETS, label_smoothing=0.1, reduction="none"),
                      (4, 5)),
}


@pytest.fixture(params=FUSED)
def case(request):
    """A function, and its inputs."""
    function, *shapes = FUSED[request.param]
    return function, [Tensor(RNG.normal(size=shape), requires_grad=True) for shape in shapes]


def test_expanded_primitives_have_the_derivatives_of_their_compositions_to_third_order(case):
    function, inputs = case

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


def test_an_expansion_on_the_way_to_an_intermediate(case):
    """The expansion's own nodes are on the path although they did not exist when the path was found."""
    function, (x, *rest) = case

    def derivatives():
        h = x * x
        out = function(h, *rest)
        first = grad((out * out * exp(out)).sum(), h, create_graph=True)
        return first.numpy(), grad((first * first).sum(), x).numpy()

    ours = derivatives()
    with fused(False):
        for one, other in zip(ours, derivatives(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
