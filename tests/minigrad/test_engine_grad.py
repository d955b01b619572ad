"""`grad`: any outputs by any inputs, and no more work than these need."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, grad

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
