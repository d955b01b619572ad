"""Draws attention_graph.svg, beside this file, for docs/inspecting.md: python docs/images/attention_graph.py"""

from pathlib import Path

import numpy as np

import minigrad as mg
from minigrad import Tensor, inspect

from transformer.model import MultiHeadAttention


def attention_graph() -> inspect.Drawing:
    """Multi-head self-attention with a causal mask, step by step, and the gradients of one backward."""
    with mg.random.fork(0):
        layer = MultiHeadAttention(d_model=16, num_heads=2)
    x = Tensor(np.random.default_rng(0).normal(size=(4, 10, 16)), dtype=np.float32, requires_grad=True)
    with mg.fused(False), inspect.record_tape() as tape:
        layer(x, x, x, np.tril(np.ones((10, 10), bool))).sum().backward()
    return inspect.draw(tape)


if __name__ == "__main__":
    attention_graph().save(Path(__file__).with_suffix(".svg"))
