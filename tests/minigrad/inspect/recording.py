"""What the tests of the tape share: a leaf, a tape of what a function does, the names on it."""

import numpy as np

from minigrad import Tensor, inspect
from minigrad.engine.interpreters import interpreters


def leaf(*shape, device="cpu"):
    return Tensor(np.random.default_rng(1).normal(size=shape), device=device, requires_grad=True)


def record(function, **options):
    before = interpreters()
    with inspect.record_tape(**options) as tape:
        function()
    assert interpreters() == before
    return tape


def names(tape):
    return [entry.name for entry in tape.in_firing_order()]
