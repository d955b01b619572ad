"""The gradient of a batch on a GPU, by one launch: forward and backward recorded as a CUDA graph."""

import weakref
from functools import partial
from typing import Any

import numpy as np

from minigrad.device import on_device_of, xp
from minigrad.engine.node import wrap
from minigrad.kernels.cuda.graph import Recorded
from minigrad.tensor.gradients import arrive, backward

from transformer.model import Transformer


class RecordedGradients:
    """Sums of losses and their gradients, recorded once for all batches of the same shape.

    The arrays of ``.grad`` are written anew by the next batch.

    Args:
        model: the model, on a GPU.
    """

    def __init__(self, model: Transformer) -> None:
        self.model, self.label_smoothing = model, 0.0
        self.addresses: list[int] = []  # of the parameters and buffers that the graphs read
        self.total: Any = None  # the loss, and the gradients of all parameters
        self.places: list[Any] = []
        self.recorded: Recorded

    def __call__(self, shard: Any, label_smoothing: float, denominator: float) -> Any:
        """As `ParallelGradients.accumulate`, of one shard, whose ids are on the GPU."""
        source, labels = shard
        parameters, modules = list(self.model.parameters()), list(self.model.modules())
        for p in parameters:
            if p.grad is not None:  # its memory may be a place, which is written now
                p.grad = wrap(p.grad.data.copy())
        dtype = parameters[0].data.dtype
        with on_device_of(source):
            count = xp(source).full((), denominator, dtype)
            read = [*parameters, *self.model.buffers()]
            if (addresses := [tensor.data.data.ptr for tensor in read]) != self.addresses:
                self.addresses, self.total = addresses, xp(source).empty((), np.float64)
                self.places = [xp(source).empty_like(p.data) for p in parameters]
                step: Any = RecordedGradients._step
                self.recorded = Recorded(partial(step, weakref.proxy(self)))  # no cycle
            self.label_smoothing = label_smoothing
            state = (label_smoothing, *(module.training for module in modules),
                     *(getattr(module, "p", None) for module in modules), *(p.requires_grad for p in parameters))
            found = self.recorded(source, labels, count, fixed=state)
            arrive([place, True, p] for p, place in zip(parameters, found, strict=True) if place is not None)
            return self.total.copy()

    def _step(self, source: Any, labels: Any, denominator: Any) -> list[Any]:
        """Write the loss and the gradients to their places; returns those, None for a parameter without gradient."""
        places, reached = dict(zip(self.model.parameters(), self.places, strict=True)), set[Any]()

        def receive(p: Any, gradient: Any, owned: bool) -> None:
            places[p][...] = gradient
            reached.add(p)

        loss = self.model.loss(source, labels, self.label_smoothing, reduction="sum")
        backward(loss / denominator, receive=receive)
        self.total[...] = loss.data
        return [place if p in reached else None for p, place in places.items()]
