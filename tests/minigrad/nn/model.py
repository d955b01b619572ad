"""A small model with everything a Module can hold: parameters, buffers, children, a tie."""

import numpy as np

import minigrad
from minigrad import Tensor, nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.scale = nn.Parameter(np.ones(3, np.float32))
        self.drop = nn.Dropout(0.5)
        self.register_buffer("offset", minigrad.full((3,), 2.0))

    def forward(self, x):
        return self.drop(self.linear(x) * self.scale + self.offset)


class Model(nn.Module):
    """A tied pair, numbered children, and buffers of both kinds."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.out = nn.Linear(3, 5, bias=False)
        self.out.weight = self.embedding.weight
        self.register_buffer("count", Tensor(np.array([7])))
        self.register_buffer("table", minigrad.zeros((4, 3)), persistent=False)
        self.register_buffer("later", None)
        self.name = "not a part"

    def extra_repr(self):
        return "tied=True"

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


BLOCK = ["scale", "linear.weight", "linear.bias"]
NAMES = ["embedding.weight", *(f"blocks.{i}.{name}" for i in (0, 1) for name in BLOCK)]
STATE = [
    "count",
    "embedding.weight",
    *(f"blocks.{i}.{name}" for i in (0, 1) for name in ["scale", "offset", "linear.weight", "linear.bias"]),
    "out.weight",
]
