"""A batch with unequal lengths, and what a model's gradients of it are with so many threads."""

import numpy as np

import minigrad

from tests.transformer.tiny import EOS, PAD, VOCABULARY, gradients
from transformer.training.parallel_gradients import ParallelGradients


def batch(rows=7, longest=9, seed=3):
    """Rows of unequal lengths on both sides, in no order, with padding columns that all rows but one have."""
    rng = np.random.default_rng(seed)
    source, labels = np.full((2, rows, longest), PAD)
    for row in range(rows):
        for ids in (source[row], labels[row]):
            length = longest if row == 2 else int(rng.integers(2, longest - 2))
            ids[:length] = rng.integers(EOS + 1, VOCABULARY, length)
            ids[length - 1] = EOS
    return source, labels


SOURCE, LABELS = batch()
TOKENS = np.count_nonzero(LABELS)


def computed(model, threads, calls=1, source=SOURCE, labels=LABELS):
    """The losses of `calls` batches, and the sum of their gradients by name; dropout as in step 5 of seed 6."""
    model.zero_grad()
    with minigrad.random.fork(6), ParallelGradients(model, threads) as compute:
        minigrad.random.set_step(5)
        losses = [float(compute(source, labels, 0.1, TOKENS)) for _ in range(calls)]
    return losses, gradients(model)
