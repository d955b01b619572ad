"""Data parallelism over threads: the gradient of a batch, from parts of it that run at the same time.

The rows of a batch are divided into shards. Each shard runs forward and backward in one thread, with one thread for its
matrix products, so that all operations, not the products alone, use all cores. A tree fixes the order in which the
gradients of the shards are summed, and each shard draws its dropout masks from its own seed, a function of the run's
seed, the step and the shard. The same seed and number of shards therefore give the same bits, whichever thread is
faster, and however many there are.
"""

from __future__ import annotations

import importlib
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from minigrad import Tensor, parallel, random
from minigrad.arguments import whole_number
from minigrad.device import on_device_of, to_device, xp
from minigrad.engine.node import wrap
from minigrad.engine.watch import watchers
from minigrad.tensor.gradients import backward

from transformer.data.batches import trimmed
from transformer.model import Transformer
from transformer.model.transformer import ids_on
from transformer.training.threads import limit_threads


class Shard(NamedTuple):
    """Some rows of a batch, without the columns that are padding in all of them: source (b, s) and labels (b, t)."""

    source: Any
    labels: Any


class Part(NamedTuple):
    """Of `total` shards of a batch, those that this process computes: neighbours, from number `first` on."""

    shards: list[Shard]
    first: int
    total: int


def divided(real: np.ndarray, parts: int) -> list[np.ndarray]:
    """The rows of each part of a batch, from their numbers of real tokens; fewer rows give fewer parts, but one.

    Rows of like length go together, which leaves the least padding, and every part has about as many real tokens.
    """
    if parts == 1 or len(real) < 2:
        return [np.arange(len(real))]
    order = np.argsort(real, kind="stable")
    return [np.asarray(rows) for rows in parallel.shares(order.tolist(), real[order].tolist(), parts)]


def split(source: Any, labels: Any, pad_id: int, shards: int) -> list[Shard]:
    """Divide a batch, host arrays (B, S) and (B, T), into shards; see `divided`."""
    real = np.count_nonzero(source != pad_id, axis=1) + np.count_nonzero(labels != pad_id, axis=1)
    return [Shard(trimmed(source[rows], pad_id), trimmed(labels[rows], pad_id)) for rows in divided(real, shards)]


class ParallelGradients:
    """Gradients of a model's loss, by `threads` threads: ``with ParallelGradients(model, 2) as gradients: …``.

    Inside the block the matrix products have one thread each (with one shard, as many as before), and optimizers use
    the threads, too. The threads end with the block.

    Args:
        model: the model; if it is on a GPU, `threads` counts as 1.
        threads: the number of shards that are computed at a time.
        shards: the number of shards of a batch, by default `threads`. 1: a batch is one ordinary forward and backward.

    Raises:
        TypeError: `threads` or `shards` is no integer.
        ValueError: `threads` or `shards` is below 1.
    """

    def __init__(self, model: Transformer, threads: int, shards: int | None = None) -> None:
        threads = whole_number(threads, "threads", "ParallelGradients")
        self.model = model
        self.threads = threads if model.device == "cpu" else 1
        self.shards = self.threads if shards is None else whole_number(shards, "shards", "ParallelGradients")
        self._stack: ExitStack | None = None
        self._recorded: Any = None  # of one shard on a card: see `minigrad.kernels.cuda.graph`
        self._smoothing = 0.0

    def __enter__(self) -> Self:
        """Start the threads; RuntimeError within a block of the same object."""
        if self._stack is not None:
            raise RuntimeError("ParallelGradients: its block was entered already, and its threads run until that ends; "
                               "for a second block make another ParallelGradients")
        with ExitStack() as stack:
            if self.shards > 1:
                # Once, not at every batch: the threads of a BLAS go on spinning for a while after a product.
                stack.enter_context(limit_threads(1))
                stack.enter_context(parallel.threads(self.threads))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        """End the threads, and give back the memory of graphs."""
        self._recorded = None
        if self._stack is not None:
            self._stack.close()
            self._stack = None

    def __call__(self, source: Any, labels: Any, label_smoothing: float = 0.0, denominator: float = 1) -> Any:
        """Add the gradient of (sum of the losses of all target tokens) / denominator to ``.grad`` of the parameters.

        ``.grad`` changes after all shards have succeeded; an exception in one is raised after the others have ended,
        and changes no gradient. Hooks of parameters run once, on the sum.

        Args:
            source: ids (B, S), padded.
            labels: ids (B, T), as for `Transformer.loss`.
            label_smoothing: ε of the loss.
            denominator: usually the number of target tokens of all batches whose gradients are summed.

        Returns:
            The sum of the losses, before the division: a raw float64 number, on the model's device.

        Raises:
            RuntimeError: a call with several shards outside the ``with`` block.
        """
        return self.of(self.divide(source, labels), label_smoothing, denominator)

    def divide(self, source: Any, labels: Any) -> Part:
        """The shards of a batch that this process computes, on the model's device; ids are checked on the host."""
        config, device = self.model.config, self.model.device
        if self.shards == 1:
            return Part([Shard(self.model.source_ids(source), self.model.target_ids(labels))], 0, 1)
        source = ids_on("cpu", source, config.source_vocab_size, "source")
        labels = ids_on("cpu", labels, config.target_vocab_size, "target")
        if len(source) != len(labels):
            raise ValueError(f"ParallelGradients: source and labels must be of the same batch, got ids of shapes "
                             f"{source.shape} and {labels.shape}")
        shards = split(source, labels, config.pad_id, self.shards)
        first, end = self.own(len(shards))
        sent = [Shard(*(to_device(ids, device) for ids in shard)) for shard in shards[first:end]]
        return Part(sent, first, len(shards))

    def of(self, part: Part, label_smoothing: float = 0.0, denominator: float = 1) -> Any:
        """As a call, for a batch that `divide` has divided."""
        if self.shards == 1:
            return self._alone(*part.shards[0], label_smoothing, denominator)
        if self._stack is None:
            raise RuntimeError("ParallelGradients: its threads run within its block; use it as "
                               "'with ParallelGradients(model, threads) as gradients:'")
        seeds = random.next_generator().integers(2**64, size=part.total, dtype=np.uint64).tolist()
        total = self._gradient_sum(part.total)

        def shard_loss(number: int) -> Any:
            """Forward and backward of one shard; its gradients go into the total."""
            with random.fork(seeds[number]):
                loss = self.model.loss(*part.shards[number - part.first], label_smoothing, reduction="sum")
                backward(loss / denominator, receive=total.receiver(number))
                return _number(loss)

        own = range(part.first, part.first + len(part.shards))
        losses = self._complete(total, parallel.run([partial(shard_loss, number) for number in own]))
        with on_device_of(losses[0]):
            return sum(losses[1:], start=losses[0])

    def _alone(self, source: Any, labels: Any, label_smoothing: float, denominator: float) -> Any:
        """One forward and backward, on a card as a CUDA graph, unless hooks or watchers are to be told of each."""
        parameters = list(self.model.parameters())
        if type(source).__module__ != "cupy" or watchers() or any(p._hooks for p in parameters):
            loss = self.model.loss(source, labels, label_smoothing, reduction="sum")
            (loss / denominator).backward()
            return _number(loss)
        if self._recorded is None:
            self._recorded = importlib.import_module("minigrad.kernels.cuda.graph").Recorded(self._step)
        self._smoothing = label_smoothing
        earlier = [None if p.grad is None else p.grad.data.copy() for p in parameters]
        with on_device_of(source):
            count = xp(source).full((), denominator, np.float32)
        places = (p.data.data.ptr for p in parameters)
        loss, *gradients = self._recorded(source, labels, count, fixed=(label_smoothing, self.model.training, *places))
        for p, gradient, before in zip(parameters, gradients, earlier, strict=True):
            p.grad = None if gradient is None else wrap(gradient if before is None else gradient + before)
        return loss.copy()

    def _step(self, source: Any, labels: Any, denominator: Any) -> list[Any]:
        """The loss and the gradients of all parameters, None for those that have none."""
        parameters = list(self.model.parameters())
        for p in parameters:
            p.grad = None
        loss = self.model.loss(source, labels, self._smoothing, reduction="sum")
        (loss / denominator).backward()
        return [_number(loss), *(None if p.grad is None else p.grad.data for p in parameters)]

    def own(self, count: int) -> parallel.Span:
        """Which of `count` shards this process computes: the first, and the one after the last."""
        return 0, count

    def _gradient_sum(self, count: int) -> parallel.GradientSum:
        return parallel.GradientSum(count)

    def _complete(self, total: parallel.GradientSum, losses: list[Any]) -> list[Any]:
        """Add the sum over all shards to ``.grad``; returns the losses of all shards."""
        total.deliver()
        return losses


def _number(loss: Tensor) -> Any:
    """The loss as a raw float64 number, on its device."""
    with on_device_of(loss.data):
        return loss.data.astype(np.float64)
