"""Memory: what the tape keeps of a layer is the minimum."""

import gc
import tracemalloc

import numpy as np
import pytest

import minigrad
from minigrad import Tensor

from transformer.model import EncoderLayer

BATCH, TIME, D, FF, HEADS = 4, 24, 32, 96, 4
TOKENS = BATCH * TIME
WEIGHTS = BATCH * HEADS * TIME * TIME


def encoder_layer(p):
    with minigrad.random.fork(0):
        layer = EncoderLayer(d_model=D, num_heads=HEADS, d_ff=FF, dropout=p)
    x = Tensor(np.random.default_rng(0).normal(size=(BATCH, TIME, D)).astype(np.float32), requires_grad=True)
    return layer.train(), x


def array_bytes_of(call):
    """Bytes of array memory that are alive after the call, and were not before; its result among them."""
    with minigrad.random.fork(0):
        call()  # what is made once: plans, imports
        gc.collect()
        tracemalloc.start()
        try:
            result = call()
            of_numpy = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
            snapshot = tracemalloc.take_snapshot().filter_traces([of_numpy])
        finally:
            tracemalloc.stop()
    assert result.requires_grad
    return sum(trace.size for trace in snapshot.traces)


@pytest.mark.parametrize("p", [0.0, 0.1])
def test_the_tape_keeps_of_an_encoder_layer_what_its_gradient_needs_and_no_more(p):
    """In float32, pre-norm. The input and the parameters are not counted: somebody else holds them anyway."""
    layer, x = encoder_layer(p)
    floats = {
        "layer norm: its mean and reciprocal deviation, twice": 4 * TOKENS,
        "the normalised x, for W_Q, W_K and W_V": TOKENS * D,
        "Q, K and V": 3 * TOKENS * D,
        "A": WEIGHTS,
        "the heads' contexts side by side, for W_O": TOKENS * D,
        "the sum with x, for the second layer norm": TOKENS * D,
        "its normalised form, for W_1": TOKENS * D,
        "ReLU's output": TOKENS * FF,
        "the layer's output, which the caller holds": TOKENS * D,
    }
    booleans = {}
    if p:
        floats["ReLU's output after dropout, for W_2"] = TOKENS * FF
        booleans = {"of A": WEIGHTS, "of the two sublayers": 2 * TOKENS * D, "of ReLU's output": TOKENS * FF}
    minimum = 4 * sum(floats.values()) + sum(booleans.values())
    assert minimum <= array_bytes_of(lambda: layer(x)) <= minimum + 256
