"""The floor: the matrix products of a training step and nothing else, by NumPy, into arrays that are there already.

Forward A B = C, and backward dA = dC Bᵀ and dB = Aᵀ dC: three products for each. Both inputs of every product need a
gradient, since the embeddings are trained. Transposed 2-D operands cost nothing, a flag to the BLAS; those of batched
products are laid out here as the product wants them, as if transposing were free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits
from workloads import Workload

from peers import Training


class Product(NamedTuple):
    """`batch` products of (rows, inner) by (inner, columns); a batch of 1 is a plain matrix product."""

    batch: int
    rows: int
    inner: int
    columns: int


def products(workload: Workload) -> list[Product]:
    """Those of the forward pass, with one for queries, keys and values wherever they come from the same input."""
    w, tokens, width = workload, workload.batch * workload.length, workload.d_model
    scores = Product(w.batch * w.heads, w.length, width // w.heads, w.length)
    context = Product(w.batch * w.heads, w.length, w.length, width // w.heads)

    def linear(inner: int, columns: int) -> Product:
        return Product(1, tokens, inner, columns)

    self_attention = [linear(width, 3 * width), scores, context, linear(width, width)]
    cross_attention = [linear(width, width), linear(width, 2 * width), scores, context, linear(width, width)]
    feed_forward = [linear(width, w.d_ff), linear(w.d_ff, width)]
    encoder_layer = self_attention + feed_forward
    decoder_layer = self_attention + cross_attention + feed_forward
    return w.layers * (encoder_layer + decoder_layer) + [linear(width, w.vocabulary)]


def operations(workload: Workload) -> int:
    """Additions and multiplications of forward and backward together."""
    return sum(3 * 2 * p.batch * p.rows * p.inner * p.columns for p in products(workload))


def run(product: Product, random: np.random.Generator) -> Callable[[], None]:
    """A function that computes a product, forward and backward, in arrays of its own."""
    def draw(*shape: int) -> np.ndarray:
        array = random.standard_normal((product.batch, *shape), np.float32)
        return array[0] if product.batch == 1 else array

    rows, inner, columns = product[1:]
    a, b, c = draw(rows, inner), draw(inner, columns), draw(rows, columns)
    da, db = np.empty_like(a), np.empty_like(b)
    a_transposed, b_transposed = (x.T if x.ndim == 2 else x.swapaxes(1, 2).copy() for x in (a, b))

    def both() -> None:
        np.matmul(a, b, out=c)
        np.matmul(c, b_transposed, out=da)
        np.matmul(a_transposed, c, out=db)
    return both


@contextmanager
def trainer(workload: Workload, weights: str, threads: int) -> Iterator[Training]:
    """See `peers`: a step that learns nothing and has no loss. Padding is computed like everything else."""
    random = np.random.default_rng(0)
    runs = [run(product, random) for product in products(workload)]

    def step(batch: object) -> float:
        for both in runs:
            both()
        return 0.0

    with threadpool_limits(threads):
        yield Training(lambda source, labels: None, step, None)
