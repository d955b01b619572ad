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

    The arrays of ``.grad`` are written anew by the next batch.

    Args:
        model: the model, on a GPU.
    """

    def __init__(self, model: Transformer) -> None:
        self.model, self.label_smoothing = model, 0.0
        self.addresses: list[int] = []  # of the parameters that the graphs read
        self.total: Any = None  # the loss, and the gradients of all parameters
        self.places: list[Any] = []
        self.recorded: Recorded

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
            if (addresses := [p.data.data.ptr for p in parameters]) != self.addresses:
                self.addresses, self.total = addresses, xp(source).empty((), np.float64)
                self.places = [xp(source).empty_like(p.data) for p in parameters]
                self.recorded = Recorded(self._step)
            self.label_smoothing = label_smoothing
            found = self.recorded(source, labels, count, fixed=(label_smoothing, self.model.training))
            for p, place, before in zip(parameters, found, earlier, strict=True):
                p.grad = None if place is None else wrap(place if before is None else place + before)
            return self.total.copy()

    def _step(self, source: Any, labels: Any, denominator: Any) -> list[Any]:
        """Write the loss and the gradients to their places; returns those, None for a parameter without gradient."""
        parameters, found = list(self.model.parameters()), list[Any]()
        for p in parameters:
            p.grad = None
        loss = self.model.loss(source, labels, self.label_smoothing, reduction="sum")
        (loss / denominator).backward()
        self.total[...] = loss.data
        for p, place in zip(parameters, self.places, strict=True):
            found.append(None if p.grad is None else place)
            if p.grad is not None:
                place[...] = p.grad.data
                p.grad = None
        return found
