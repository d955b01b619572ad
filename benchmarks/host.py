"""What plain NumPy takes for one thing written in two ways: why the fused operations are written as they are.

    python benchmarks/host.py

Arrays are those of a training step of the models in workloads.py, float32, one thread for the matrix products.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator

import numpy as np
import page
import paired

from transformer.training.memory import keep_freed_memory
from transformer.training.threads import limit_threads

WAYS = ("chosen", "other")
TURN = 0.02  # seconds of one turn
Call = Callable[[], object]


def normal(*shape: int) -> np.ndarray:
    """Numbers to compute with."""
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def of_rows(rows: int, width: int) -> Iterator[tuple[str, Call, Call]]:
    """What is done to every token by itself."""
    x, out, size, numbers = normal(rows, width), normal(rows, width), f"({rows:,}, {width})", np.random.default_rng(0)
    ones, one_a_row, zeros = (np.full(n, value, np.float32) for n, value in ((width, 1), (rows, 1), (width, 0)))
    mask, bits = numbers.random((rows, width)) < 0.9, np.random.SFC64(1)
    yield f"sums of rows {size}: product with ones, `sum`", lambda: x @ ones, lambda: x.sum(axis=1)
    yield f"sums of columns {size}: product with ones, `sum`", lambda: one_a_row @ x, lambda: x.sum(axis=0)
    yield (f"ReLU {size}: `maximum` with a row of zeros, with a number",
           lambda: np.maximum(x, zeros, out=out), lambda: np.maximum(x, 0, out=out))
    yield (f"dropout {size}: product with the mask, `where`",
           lambda: np.multiply(x, mask, out=out), lambda: np.where(mask, x, np.float32(0)))
    yield (f"dropout mask {size}: 16 random bits a number, a random float",
           lambda: bits.random_raw(x.size // 4).view(np.uint16) < 58982,
           lambda: numbers.random(x.shape, np.float32) < 0.9)


def of_attention(batch: int, heads: int, length: int, features: int) -> Iterator[tuple[str, Call, Call]]:
    """What is done to scores, and how they are made."""
    size = f"({batch}, {heads}, {length}, {length})"
    scores, out = normal(batch, heads, length, length), normal(batch, heads, length, length)
    causal, ones = np.tri(length, dtype=bool), np.ones(length, np.float32)
    bias = np.where(causal, np.float32(0), np.float32(-math.inf))
    queries = keys = normal(batch, length, heads * features)

    def shifted() -> np.ndarray:
        np.exp(np.subtract(scores, scores.max(axis=-1, keepdims=True), out=out), out=out)
        return out.sum(axis=-1)

    def split(x: np.ndarray) -> np.ndarray:
        return x.reshape(batch, length, heads, features).swapaxes(1, 2)

    yield (f"exponentials and their sums {size}: plain, with the maximum of each row taken off",
           lambda: np.exp(scores, out=out) @ ones, shifted)
    yield (f"masking scores {size}: a sum with 0 and -inf, `where`",
           lambda: np.add(scores, bias, out=out), lambda: np.where(causal, scores, np.float32(-math.inf)))
    yield (f"scores of heads {size}: from where they lie, from copies",
           lambda: np.matmul(split(queries), split(keys).mT, out=out),
           lambda: np.matmul(split(queries).copy(), split(keys).copy().mT, out=out))


def of_projections(rows: int, width: int) -> Iterator[tuple[str, Call, Call]]:
    """Queries, keys and values, from weights that are three parameters."""
    x, weights, out = normal(rows, width), [normal(width, width) for _ in range(3)], normal(rows, 3 * width)
    yield (f"queries, keys and values ({rows:,}, {width}): three products, one with the weights joined",
           lambda: [x @ weight.T for weight in weights], lambda: np.matmul(x, np.concatenate(weights).T, out=out))


def cases() -> Iterator[tuple[str, Call, Call]]:
    """What is computed, how the fused operations do it, and how they do not."""
    for shape in ((768, 64), (2048, 256)):
        yield from of_rows(*shape)
    for heads in ((64, 4, 12, 16), (32, 8, 64, 32)):
        yield from of_attention(*heads)
    for shape in ((768, 64), (2048, 256), (512, 512)):
        yield from of_projections(*shape)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--dry", action="store_true", help="print the table, and write nothing")
    options = parser.parse_args()
    keep_freed_memory()
    results = {}
    with limit_threads(1):
        for title, *calls in cases():
            rounds = [{way: {title: paired.per_call(call, TURN)} for way, call in zip(WAYS, calls, strict=True)}
                      for _ in range(options.rounds)]
            results |= paired.compare(rounds, *WAYS)
    report = paired.report("NumPy in two ways, float32, one thread", "µs", options.rounds, [], results)
    page.publish("host", report, not options.dry)


if __name__ == "__main__":
    main()
