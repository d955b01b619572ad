"""The gradient of a batch on a GPU, by one launch: forward and backward recorded as a CUDA graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device import on_device_of, xp
from minigrad.engine.node import wrap
from minigrad.engine.watch import watchers
from minigrad.kernels.cuda.graph import Recorded

from transformer.model import Transformer


class RecordedGradients:
    """Sums of losses and their gradients, recorded once for all batches of the same shape.

    The arrays of ``.grad`` are written anew by the next batch of any shape.

    Args:
        model: the model, on a GPU.
    """

    def __init__(self, model: Transformer) -> None:
        self.model, self.label_smoothing = model, 0.0
        self.recorded = Recorded(self._step)

    @staticmethod
    def serve(model: Transformer) -> bool:
        """Whether they do now: the model is on a card, and neither hooks nor watchers are to be told of steps."""
        parameters = list(model.parameters())
        return (type(parameters[0].data).__module__ == "cupy" and not watchers()
                and not any(p._hooks for p in parameters))

    def __call__(self, shard: Any, label_smoothing: float, denominator: float) -> Any:
        """As `ParallelGradients`; the ids of the shard are on the GPU."""
        source, labels = shard
        parameters = list(self.model.parameters())
        earlier = [None if p.grad is None else p.grad.data.copy() for p in parameters]
        with on_device_of(source):
            count = xp(source).full((), denominator, np.float32)
        self.label_smoothing = label_smoothing
        places = (p.data.data.ptr for p in parameters)
        loss, *gradients = self.recorded(source, labels, count, fixed=(label_smoothing, self.model.training, *places))
        for p, gradient, before in zip(parameters, gradients, earlier, strict=True):
            p.grad = None if gradient is None else wrap(gradient if before is None else gradient + before)
        return loss.copy()

    def _step(self, source: Any, labels: Any, denominator: Any) -> list[Any]:
        """The loss and the gradients of all parameters, None for those that have none."""
        parameters = list(self.model.parameters())
        for p in parameters:
            p.grad = None
        loss = self.model.loss(source, labels, self.label_smoothing, reduction="sum")
        (loss / denominator).backward()
        return [loss.data.astype(np.float64), *(None if p.grad is None else p.grad.data for p in parameters)]
