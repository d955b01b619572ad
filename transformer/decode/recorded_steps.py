"""A step of decoding on a GPU by one launch: the decoder and the choice of tokens, recorded as a CUDA graph."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from minigrad import nn
from minigrad.device import asarray_on
from minigrad.kernels.cuda.graph import Recorder, on_a_card

from transformer.decode.cache import Cache
from transformer.model import Transformer


class RecordedSteps:
    """The steps of a `Search` after its first, recorded once for each number of texts, of hypotheses and of entries.

    A graph computes the same at each launch. So a step reads all entries that there is room for, and what changes from
    step to step comes in an array: the place, the entries to write, the ids, and which entries are seen.

    Args:
        model: a `Transformer` on a GPU.
        cache: that has read all but the last token of each hypothesis.
        classes: V.
        choose: what follows on logits (B · K, V) and the results of ``rules(classes)``.
    """

    def __init__(self, model: Any, cache: Cache, classes: int, choose: Callable[..., Any]) -> None:
        self.model, self.cache, self.classes, self.choose = model, cache, classes, choose
        self.graphs: dict[Any, Any] = {}  # None: what cannot be recorded
        self.recorder = recorder(model.device, threading.get_ident())
        self.recorder.owners.add(self)

    @staticmethod
    def serve(model: nn.Module) -> bool:
        """Whether they do now: for a `Transformer` on a card, and no subclass, which may decode in another way."""
        return type(model) is Transformer and on_a_card(model)

    def __call__(self, ids: Any, beside: Mapping[str, Any], rules: Callable[[int], Iterable[Any]]) -> Any:
        """What follows on ids (B, K, length), on the host; None if the step cannot be recorded."""
        cache: Cache = self.cache
        texts, hypotheses, length = ids.shape
        places, seen = cache.following(1)
        room = max(layer.tokens.make_room(len(places)) for layer in cache.layers.values())
        visible = np.zeros((texts, hypotheses, room), np.int64)
        visible[:, :, :len(places)] = 1 if seen is None else seen
        entries = np.arange(len(places) - hypotheses, len(places))
        step = np.concatenate([[length - 1], entries, ids[:, :, -1].ravel(), visible.ravel()])
        arrays = sent([step, *rules(self.classes)], self.model.device)
        key = room, hypotheses, *(None if x is None else x.shape for x in arrays)
        if key not in self.graphs:
            self.graphs[key] = self.recorder.record(functools.partial(self._step, beside), arrays)
            cache.past, cache.entries = length - 1, None
        if self.graphs[key] is None:
            return None
        (found,) = self.graphs[key](*arrays)
        cache.places, cache.seen, cache.past, cache.length = places, seen, length - 1, length
        for layer in cache.layers.values():
            layer.tokens.used = len(places)
        return found

    def _step(self, beside: Mapping[str, Any], step: Any, *rules: Any) -> list[Any]:
        """What the graph does: it writes to the buffers of the cache, and reads them."""
        cache: Cache = self.cache
        shape = cache.texts, 1, cache.hypotheses, -1
        first, end = 1 + cache.hypotheses, 1 + cache.hypotheses + cache.texts * cache.hypotheses
        cache.past, cache.entries, ids, cache.visible = (
            step[:1], step[1:first], step[first:end, None], (step[end:] != 0).reshape(shape))
        hidden = self.model.decoder(ids, beside["memory"], None, beside["memory_mask"], cache=cache)
        return [self.choose(self.model.logits(hidden).data[:, -1], *rules)]


@functools.cache
def recorder(device: str, thread: int) -> Recorder:
    """Of all searches of a thread on a device: the memory of the graphs of one serves the next."""
    return Recorder()


def sent(arrays: Iterable[Any], device: str) -> list[Any]:
    """Host arrays on the device; None for None."""
    return [None if array is None else asarray_on(device, array) for array in arrays]
