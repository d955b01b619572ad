"""Recorded programs for the tests of the pictures."""

import numpy as np

import minigrad as mg
from minigrad import Tensor, inspect, nn
from minigrad.func import checkpoint

from tests.minigrad.inspect.steps import training_step
from transformer.model import MultiHeadAttention


def attention_tape(backward=True):
    layer, mask = MultiHeadAttention(8, 2), np.tril(np.ones((5, 5), bool))
    x = Tensor(np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32), requires_grad=True)
    with mg.fused(False), inspect.record_tape() as tape:
        out = layer(x, x, x, mask).sum()
        if backward:
            out.backward()
    return tape


def second_order_tape():
    x = Tensor(np.ones(3), requires_grad=True)
    with inspect.record_tape() as tape:
        (first,) = mg.grad((mg.tanh(x) * x).sum(), [x], create_graph=True)
        (first * first).sum().backward()
    return tape


def step_tape():
    model, step = training_step()
    with inspect.record_tape(model) as tape:
        step()
    return tape


class Checkpointed(nn.Module):
    """A nested checkpoint, and a parameter that several modules share."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(2)])
        self.blocks[1][0].weight = self.blocks[0][0].weight

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(lambda x, block=block: checkpoint(block, x) * 2, x)
        return x


def checkpoint_tape():
    x = Tensor(np.ones((2, 4), np.float32), requires_grad=True)
    with inspect.record_tape() as tape:
        Checkpointed()(x).sum().backward()
    return tape


def expansion_tape():
    x = Tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    with inspect.record_tape() as tape:
        first = mg.grad(mg.functional.layer_norm(x)[0, 0], x, create_graph=True)
        (first * first).sum().backward()
    return tape
