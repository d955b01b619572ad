"""Data parallelism: the gradient of a batch, from parts of it that run at the same time in threads and on ranks of MPI.

The rows of a batch are divided into shards. Each shard runs forward and backward in one thread, with one thread for its
matrix products, so that all operations, not the products alone, use all cores. Of several ranks, each computes
neighbours among the shards, and all get the sum over all shards. A tree fixes the order in which the gradients of the
shards are summed (`minigrad.parallel`, `transformer.distributed.buckets`), and each shard draws its dropout masks from
its own seed, a function of the run's seed, the step and the shard. The same seed and number of shards therefore give
the same bits, whichever thread is faster, and however many threads and ranks there are.
"""

from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from minigrad import parallel, random
from minigrad.arguments import whole_number
from minigrad.device import on_device, to_device
from minigrad.kernels.cuda.graph import on_a_card
from minigrad.tensor.gradients import arrive, backward

from transformer.data.batches import trimmed
from transformer.distributed import ALONE, Alone, Ranks
from transformer.distributed.buckets import Exchange
from transformer.model import Transformer
from transformer.model.transformer import ids_on
from transformer.training.recorded_gradients import RecordedGradients
from transformer.training.threads import limit_threads


class Shard(NamedTuple):
    """Some rows of a batch, without the columns that are padding in all of them: source (b, s) and labels (b, t)."""

    source: Any
    labels: Any


def split(source: Any, labels: Any, pad_id: int, shards: int) -> list[Shard]:
    """Divide a batch, host arrays (B, S) and (B, T), into shards; fewer rows give fewer shards, but one.

    Rows of like length go together, which leaves the least padding, and every shard has about as many real tokens.
    """
    real = np.count_nonzero(source != pad_id, axis=1) + np.count_nonzero(labels != pad_id, axis=1)
    order: Any = np.argsort(real, kind="stable")
    return [Shard(trimmed(source[rows], pad_id), trimmed(labels[rows], pad_id))
            for rows in parallel.shares(order, real[order], shards) or [order]]


class ParallelGradients:
    """Gradients of a model's loss, by `threads` threads: ``with ParallelGradients(model, 2) as gradients: …``.

    Inside the block the matrix products have one thread each (with one shard, as many as before), and optimizers use
    the threads, too. The threads end with the block; outside of it, one shard is computed after the other.

    Args:
        model: the model; if it is on a GPU, `threads` counts as 1.
        threads: the number of shards that are computed at a time.
        shards: the number of shards of a batch, by default one for each thread of each rank. 1: a batch is one ordinary
            forward and backward.
        ranks: the processes that compute together; all have the same model, and call with the same whole batch.

    Raises:
        TypeError: `threads` or `shards` is no integer.
        ValueError: `threads` or `shards` is below 1.
    """

    def __init__(self, model: Transformer, threads: int = 1, shards: int | None = None, ranks: Alone = ALONE) -> None:
        threads = whole_number(threads, "threads", "ParallelGradients")
        self.model, self.ranks = model, ranks
        self.threads = threads if model.device == "cpu" else 1
        shards = self.threads * ranks.size if shards is None else shards
        self.shards = whole_number(shards, "shards", "ParallelGradients")
        self._block = ExitStack()
        self._recorded: RecordedGradients | None = None

    def __enter__(self) -> Self:
        """Start the threads."""
        if self.shards > 1:
            # Once, not at every batch: the threads of a BLAS go on spinning for a while after a product.
            self._block.enter_context(limit_threads(1))
            self._block.enter_context(parallel.threads(self.threads))
        return self

    def __exit__(self, *exception: object) -> None:
        """End the threads, and give back the memory of what is recorded."""
        self._block.close()
        self._recorded = None

    def __call__(self, source: Any, labels: Any, label_smoothing: float = 0.0, denominator: float = 1) -> Any:
        """Divide a batch into shards, and `accumulate` its gradient in ``.grad``: the sum of the losses.

        Args:
            source: ids (B, S), padded.
            labels: ids (B, T), as for `Transformer.loss`.
            label_smoothing, denominator: as for `accumulate`.
        """
        return self.accumulate(self.divide(source, labels), label_smoothing, denominator)

    def divide(self, source: Any, labels: Any) -> list[Shard | None]:
        """The shards of a batch: our own on the model's device, None for those of other ranks.

        Ids are checked on the host.
        """
        config, device = self.model.config, self.model.device
        if self.shards == 1:  # which every rank computes
            return [Shard(self.model.source_ids(source), self.model.target_ids(labels))]
        batch = Shard(ids_on("cpu", source, config.source_vocab_size, "source"),
                      ids_on("cpu", labels, config.target_vocab_size, "target"))
        shards = split(*batch, config.pad_id, self.shards)
        own = range(*self.ranks.own(len(shards)))
        return [Shard(*(to_device(ids, device) for ids in shard)) if number in own else None
                for number, shard in enumerate(shards)]

    def accumulate(self, shards: list[Shard | None], label_smoothing: float = 0.0, denominator: float = 1) -> Any:
        """Add the gradient of (sum of the losses of all target tokens) / denominator to ``.grad`` of the parameters.

        ``.grad`` changes after all shards have succeeded; an exception in one is raised after the others have ended,
        and changes no gradient. Hooks of parameters run once, on the sum.

        Args:
            shards: a batch, as `divide` has divided it.
            label_smoothing: ε of the loss.
            denominator: usually the number of target tokens of all batches whose gradients are summed.

        Returns:
            The sum of the losses, before the division: a raw float64 number, on the model's device; of several ranks,
            on the host.
        """
        def loss_of(shard: Any, receive: Any = None) -> Any:
            """The loss, not divided; its gradient goes to `receive`, or else into ``.grad``."""
            loss = self.model.loss(shard.source, shard.labels, label_smoothing, reduction="sum")
            backward(loss / denominator, receive=receive)
            with on_device(self.model.device):
                return loss.data.astype(np.float64)

        if self.shards == 1:
            if not on_a_card(self.model):
                return loss_of(shards[0])
            self._recorded = self._recorded or RecordedGradients(self.model)
            return self._recorded(shards[0], label_smoothing, denominator)
        seeds = random.next_generator().integers(2**64, size=len(shards), dtype=np.uint64).tolist()
        own, exchange = self.ranks.own(len(shards)), None
        if self.ranks is not ALONE:
            leaves = (p for p in reversed(list(self.model.parameters())) if p.requires_grad)
            exchange = Exchange(self.ranks, leaves, len(shards))
        total = parallel.GradientSum(len(shards), own, exchange.put if exchange else None)

        def of_shard(number: int) -> Any:
            with random.fork(seeds[number]):
                return loss_of(shards[number], total.receiver(number))

        losses = parallel.run([partial(of_shard, number) for number in range(*own)])
        if exchange:
            entries, told = exchange.finish(total.incomplete(), [float(loss) for loss in losses])
            arrive(entries)
            return sum(loss for of_rank in told for loss in of_rank)
        total.deliver()
        with on_device(self.model.device):
            return sum(losses)


class DistributedGradients(ParallelGradients):
    """Gradients by all ranks: ``with DistributedGradients(model, MPI.COMM_WORLD) as gradients: …``.

    Waits end with a `RankError` if another rank fails; of an exception that ends a rank the others are told.

    Args:
        model: the model.
        comm: a communicator of mpi4py.
        threads, shards: as for `ParallelGradients`; the threads are those of this rank.
    """

    def __init__(self, model: Transformer, comm: Any, threads: int = 1, shards: int | None = None) -> None:
        super().__init__(model, threads, shards, Ranks(comm))
