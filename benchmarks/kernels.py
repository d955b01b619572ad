"""Each compiled kernel against the NumPy body that it stands in for, both in one process and in one thread, in turn.

    python benchmarks/kernels.py                  all of them, at the shapes of the workloads
    python benchmarks/kernels.py softmax adam     those whose names begin so

The time is that of the operation as the engine runs it, bookkeeping included: forward, then backward.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import page
import paired

import minigrad
from minigrad import Tensor, nn, optim, random
from minigrad import functional as F
from minigrad.kernels import is_jit_on

from transformer.training.memory import keep_freed_memory
from transformer.training.threads import limit_threads

BODIES = ("minigrad jit", "minigrad")
TURN = 0.02  # seconds that one body has, before it is the other's turn
Call = Callable[[], object]


def differentiable(function: Callable[..., Tensor], *shapes: tuple[int, ...],
                   scale: float = 1.0) -> Iterator[tuple[str, Call]]:
    """The forward of `function` on tensors of these shapes, and its backward; each runs where it is called."""
    numbers = np.random.default_rng(0)
    inputs = [Tensor(scale * numbers.standard_normal(shape, np.float32), requires_grad=True) for shape in shapes]
    yield "forward", lambda: function(*inputs)
    gradient = Tensor(numbers.standard_normal(function(*inputs).shape, np.float32))
    recorded: dict[bool, Tensor] = {}

    def backward() -> None:
        for x in inputs:
            x.grad = None
        recorded[is_jit_on()].backward(gradient, retain_graph=True)

    for jit in (True, False):
        with minigrad.jit(jit):
            recorded[jit] = function(*inputs)
    yield "backward", backward


def updated(optimizer: Callable[..., Any], *shapes: tuple[int, ...]) -> Iterator[tuple[str, Call]]:
    """The step of an optimizer on parameters of these shapes."""
    numbers = np.random.default_rng(0)
    parameters = [nn.Parameter(numbers.standard_normal(shape, np.float32)) for shape in shapes]
    for p in parameters:
        p.grad = Tensor(numbers.standard_normal(p.shape, np.float32))
    yield "step", optimizer(parameters).step


def cases() -> Iterator[tuple[str, Iterator[tuple[str, Call]]]]:
    """What is measured: titles, and what each of them is made of."""
    kept = {shape: random.bernoulli_mask(random.DropoutKey(0, 0, 0), shape, 0.9)
            for shape in ((2048, 256), (2048, 1024))}
    ids = np.random.default_rng(0).integers(0, 8000, 2048)
    for shape in ((64, 4, 12, 12), (64, 8, 16, 16), (32, 8, 64, 64)):
        yield f"softmax {shape}", differentiable(F.softmax, shape)
    for batch, heads, length, width in ((64, 4, 12, 16), (64, 8, 16, 32), (32, 8, 64, 32), (16, 8, 32, 64)):
        shape, square = (batch, length, heads * width), (batch, heads, length, length)
        dropped = random.bernoulli_mask(random.DropoutKey(0, 0, 0), square, 0.9)
        causal = np.tri(length, dtype=bool)
        yield f"attention {square}", differentiable(
            lambda q, k, v, h=heads, m=causal: F.multi_head_attention(q, k, v, h, m), shape, shape, shape)
        yield f"attention with dropout {square}", differentiable(
            lambda q, k, v, h=heads, m=causal, d=dropped: F.multi_head_attention(q, k, v, h, m, 0.1, dropped=d),
            shape, shape, shape)
    yield "log_softmax (2048, 8000)", differentiable(F.log_softmax, (2048, 8000))
    for rows, features in ((768, 64), (2048, 256), (512, 512)):
        yield (f"layer_norm ({rows}, {features})",
               differentiable(F.layer_norm, (rows, features), (features,), (features,)))
    yield "relu (2048, 1024)", differentiable(F.relu, (2048, 1024))
    yield "gelu tanh (2048, 1024)", differentiable(lambda x: F.gelu(x, "tanh"), (2048, 1024))
    yield "gelu exact (2048, 1024)", differentiable(F.gelu, (2048, 1024))
    yield "dropout_with_mask (2048, 256)", differentiable(
        lambda x: F.dropout_with_mask(x, kept[x.shape], 0.1), (2048, 256))
    for smoothing in (0.0, 0.1):
        yield f"cross_entropy (2048, 8000), smoothing {smoothing}", differentiable(
            lambda x, smoothing=smoothing: F.cross_entropy(x, ids, label_smoothing=smoothing), (2048, 8000))
    yield "linear_cross_entropy (2048, 256) to 8000", differentiable(
        lambda x, w: F.linear_cross_entropy(x, w, ids), (2048, 256), (8000, 256), scale=0.25)
    yield "adam (8000, 256)", updated(optim.AdamW, (8000, 256))
    yield "adam 100 × (256,)", updated(optim.AdamW, *[(256,)] * 100)
    yield "adam 20 × (512, 512)", updated(optim.AdamW, *[(512, 512)] * 20)


def per_call(call: Call, jit: bool) -> float:
    """Microseconds that a call takes, in one turn."""
    with minigrad.jit(jit):
        return paired.per_call(call, TURN)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="beginnings of the titles to measure; all without")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--dry", action="store_true", help="print the table, and write nothing")
    options = parser.parse_args()
    keep_freed_memory()
    results = {}
    with limit_threads(1):
        for title, parts in cases():
            if options.names and not title.startswith(tuple(options.names)):
                continue
            for part, call in parts:
                rounds = [{name: {part: per_call(call, jit=name == BODIES[0])} for name in BODIES}
                          for _ in range(options.rounds)]
                results[f"{title} {part}"] = paired.compare(rounds, *BODIES)[part]
    report = paired.report("compiled kernels, float32, one thread", "µs", options.rounds, ["numba"], results)
    page.publish("kernels", report, not options.dry)


if __name__ == "__main__":
    main()
