"""`grad`: any outputs by any inputs, derivatives of derivatives, and fused primitives under ``create_graph``."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, functional, fused, grad, tanh

from tests.minigrad.ops.row import leaf

# --- Inputs and outputs


def test_a_gradient_to_start_from_in_every_form(device):
    x, start = leaf([1.0, 1.0], device), [0.0, 1.0]
    there = Tensor(start, device=device)
    for form in (start, there, there.astype(np.float64).data):
        for outputs, starts in ((x * 3, form), ([x * 3], [form]), ([x * 3], there.data)):
            found = grad(outputs, x, starts)
            assert (found.device, found.tolist()) == (device, [0, 3])


def test_unused_inputs():
    x, unused = leaf([1.0, 2.0]), leaf([[1.0]])
    with pytest.raises(ValueError, match=r"input 1 \(shape \(1, 1\)\).*allow_unused=True"):
        grad((x * x).sum(), [x, unused])
    gx, missing = grad((x * x).sum(), [x, unused], allow_unused=True)
    assert missing is None
    np.testing.assert_array_equal(gx.numpy(), [2, 4])
    assert grad((x * x).sum(), x * 2, allow_unused=True) is None
    assert grad((x * x).sum(), [], allow_unused=True) == ()


def test_only_the_paths_to_the_inputs_are_computed():
    calls = []

    @mg.primitive
    def noted(x):
        return x * 1

    noted.gradient(x=lambda g: calls.append(1) or g)
    x, w = leaf([1.0]), leaf([2.0])
    y = noted(x) * noted(w)
    grad(y, w, retain_graph=True)
    assert len(calls) == 1
    grad(y, [x, w])
    assert len(calls) == 3


# --- Fused primitives: the composition is recorded in their place, and the pass goes on


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
    """Also by an intermediate: nodes of the expansion are on a path that was found before they existed."""
    function, (x, *rest) = case

    def derivatives():
        h = x * x
        inputs = [h, x, *rest]
        y, found = function(h, *rest), []
        for k in range(3):
            parts = grad((y * tanh(y)).sum() if k == 0 else y, inputs, create_graph=True)
            found += [part.numpy() for part in parts]
            y = sum((part * part).sum() for part in parts)
        return found

    ours = derivatives()
    with fused(False):
        for one, other in zip(ours, derivatives(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())
