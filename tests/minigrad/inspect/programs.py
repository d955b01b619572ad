"""Small programs that the tests of the tools watch."""

import numpy as np

from minigrad import Tensor, inspect, optim
from minigrad.engine.watch import watchers

from tests.transformer.tiny import LABELS, SOURCE, tiny_model


def leaf(*shape, device="cpu", dtype=np.float64):
    return Tensor(np.ones(shape), dtype=dtype, device=device, requires_grad=True)


def training_step(device="cpu"):
    """A float32 model with dropout, masks and padding, and a function that makes one step and gives the loss."""
    model = tiny_model(np.float32, device, dropout=0.1)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)

    def step():
        loss = model.loss(SOURCE, LABELS, label_smoothing=0.1)
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return model, step


def record(function):
    """The tape of what a function does."""
    before = watchers()
    with inspect.record_tape() as tape:
        function()
    assert watchers() == before
    return tape
