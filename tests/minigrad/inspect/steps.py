"""What the tests of the tools watch: one training step of a small Transformer, and small programs."""

import numpy as np

from minigrad import optim

from tests.transformer.tiny import LABELS, SOURCE, tiny_model


def training_step(device="cpu", **changes):
    """A float32 model with dropout, masks and padding, and a function that makes one step and gives the loss."""
    model = tiny_model(np.float32, device, dropout=0.1, **changes)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)

    def step():
        loss = model.loss(SOURCE, LABELS, label_smoothing=0.1)
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return model, step
