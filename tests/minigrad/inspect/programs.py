"""Small programs that the tests of the tools watch, and the tapes of some of them."""

import numpy as np

import minigrad as mg
from minigrad import Tensor, inspect, nn, optim
from minigrad.engine.watch import watchers
from minigrad.func import checkpoint

from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer.model import MultiHeadAttention


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


def attention_tape():
    layer, mask = MultiHeadAttention(8, 2), np.tril(np.ones((5, 5), bool))
    x = Tensor(np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32), requires_grad=True)
    with mg.fused(False):
        return record(lambda: layer(x, x, x, mask).sum().backward())


class Checkpointed(nn.Module):
    """A nested checkpoint, and a parameter that several modules share."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(2)])
        self.blocks[1][0].weight = self.blocks[0][0].weight

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(lambda x, block=block: checkpoint(block, x) * 2, x)
        return x


def checkpoint_tape():
    module, x = Checkpointed(), leaf(2, 4, dtype=np.float32)
    return record(lambda: module(x).sum().backward())
