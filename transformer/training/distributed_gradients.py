"""Data parallelism over processes: the gradient of a batch, from shards of it on the ranks of MPI.

Each rank computes neighbours among the shards, in its threads (`ParallelGradients`), and all get the sum over all
shards. Its bits depend on the number of shards, and neither on the number of ranks nor on that of threads: a tree fixes
the order of the sum (`transformer.distributed.buckets`), and the masks of dropout follow from the seed, the step and
the shard.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import parallel
from minigrad.device import asarray_on
from minigrad.tensor.gradients import arrive

from transformer.distributed.buckets import BUCKET_BYTES, Exchange, Layout, Transport
from transformer.distributed.failures import RankError
from transformer.distributed.ranks import Ranks
from transformer.model import Transformer
from transformer.training.parallel_gradients import ParallelGradients


class DistributedGradients(ParallelGradients):
    """Gradients of a model's loss, by all ranks: ``with DistributedGradients(model, MPI.COMM_WORLD) as gradients: …``.

    Every rank has the same model and calls with the same whole batch; each computes its shards. All end with the
    summed ``.grad`` and the loss of the whole batch. Waits end with a `RankError` if another rank fails.

    Args:
        model: the model.
        comm: a communicator of mpi4py, or `Ranks`.
        threads: the threads of this rank.
        shards: the number of shards of a batch; by default one for each thread of each rank.
        bucket_bytes: the size at which gradients are sent.

    Raises:
        TypeError, ValueError: as `ParallelGradients`.
    """

    def __init__(self, model: Transformer, comm: Any, threads: int = 1, shards: int | None = None,
                 bucket_bytes: int = BUCKET_BYTES) -> None:
        super().__init__(model, threads, shards)
        self._tells = not isinstance(comm, Ranks)
        self.ranks = Ranks(comm) if self._tells else comm
        if shards is None:
            self.shards = self.threads * self.ranks.size
        self._bucket_bytes = bucket_bytes
        self._transport = Transport(self.ranks)
        self._exchange: Any = None  # of the last batch; kept, since MPI may write into its buffers after a failure

    def __exit__(self, *exception: object) -> None:
        """End the threads; tell the other ranks of an exception."""
        super().__exit__(*exception)
        error = exception[1]
        if self._tells and error is not None and not isinstance(error, RankError):
            self.ranks.fail(f"{type(error).__name__}: {error}")

    def _gradient_sum(self, count: int) -> parallel.GradientSum:
        leaves = (p for p in reversed(list(self.model.parameters())) if p.requires_grad)
        layout = Layout(leaves, self._bucket_bytes)
        self._exchange = Exchange(self._transport, layout, count)
        return parallel.GradientSum(count, self._own(count), self._exchange.put)

    def _complete(self, total: parallel.GradientSum, losses: list[Any]) -> list[Any]:
        entries, told = self._exchange.finish(total.incomplete(), [float(loss) for loss in losses])
        arrive(entries)
        return [asarray_on(self.model.device, loss, np.float64) for of_rank in told for loss in of_rank]
