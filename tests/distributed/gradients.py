"""A program of several ranks, which compares the gradients of `DistributedGradients` with those of one process."""

import numpy as np
from mpi4py import MPI

import minigrad
from minigrad import nn

from tests.transformer.tiny import EOS, PAD, VOCABULARY, tiny_config, tiny_model
from transformer import Transformer
from transformer.training import DistributedGradients, ParallelGradients

SHARDS, SENTENCES = 4, 7
RARE = VOCABULARY - 1


class WithRareParameter(Transformer):
    """A parameter that batches without the token `RARE` do not reach, and one that nothing reaches."""

    def __init__(self, config):
        super().__init__(config)
        self.rare, self.unused = nn.Parameter(np.ones(3)), nn.Parameter(np.ones(2))

    def loss(self, source, labels, *arguments, **options):
        loss = super().loss(source, labels, *arguments, **options)
        return loss + (self.rare * 2.0).sum() if (np.asarray(source) == RARE).any() else loss


def with_rare_parameter():
    with minigrad.random.fork(4):
        return WithRareParameter(tiny_config(dropout=0.2))


def ids(rng, rare):
    """Sentences of unequal lengths; `rare`: the one that has the token."""
    rows = np.full((SENTENCES, 8), PAD)
    for row in range(SENTENCES):
        length = int(rng.integers(1, 7))
        rows[row, :length + 1] = [*rng.integers(3, RARE, length), EOS]
    if rare is not None:
        rows[rare, 0] = RARE
    return rows


def found(model, make, batches):
    """The losses and gradients of batches, bit for bit."""
    minigrad.manual_seed(9)
    model.zero_grad()
    with make(model) as gradients:
        losses = [float(gradients(*batch, 0.1, 30)) for batch in batches]
    return losses, {name: None if p.grad is None else p.grad.numpy().tobytes() for name, p in model.named_parameters()}


def main():
    for model in (tiny_model(np.float32, dropout=0.2), tiny_model(np.float64, dropout=0.2), with_rare_parameter()):
        for rare in (None, 0, SENTENCES - 1):
            rng = np.random.default_rng(3)
            batches = [(ids(rng, rare), ids(rng, None)), (ids(rng, rare)[:2], ids(rng, None)[:2])]
            alone = found(model, lambda model: ParallelGradients(model, 1, SHARDS), batches)
            for size in (2**22, 500):  # one bucket, and many
                together = found(model, lambda model, size=size: DistributedGradients(
                    model, MPI.COMM_WORLD, 1, SHARDS, bucket_bytes=size), batches)
                if together != alone:
                    raise SystemExit(f"{type(model).__name__}, {rare}, {size}: other gradients")
    print("same")


if __name__ == "__main__":
    main()
