"""A step of decoding on a GPU by one launch: the decoder and the choice of tokens, recorded as a CUDA graph."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from minigrad import nn
from minigrad.device import asarray_on, xp
from minigrad.kernels.cuda.graph import Recorder, on_a_card

from transformer.decode.cache import Cache
from transformer.model import Transformer

OURS = "minigrad", "transformer"  # the packages whose modules keep nothing on the host from step to step


class RecordedSteps:
    """The steps of a `Search` after its first, recorded once for each number of texts, of hypotheses and of entries.

    A graph computes the same at each launch. So a step reads all entries that there is room for, and what changes from
    step to step comes in an array: the place, the entries to write, the ids, and which entries are seen.

    Args:
        model: a `Transformer` on a GPU.
        cache: that has read all but the last token of each hypothesis.
        classes: of the logits, V.
        choose: what follows on logits (B · K, V) and on the arrays of ``rules(classes)``.
    """

    def __init__(self, model: Any, cache: Cache, classes: int, choose: Callable[..., Any]) -> None:
        self.model, self.cache, self.classes, self.choose = model, cache, classes, choose
        self.graphs: dict[Any, Any] = {}
        self.recorder = recorder(model.device, threading.get_ident())
        self.recorder.owners.add(self)

    @staticmethod
    def serve(model: nn.Module, forward: Callable[..., Any]) -> bool:
        """Whether they do: for a `Transformer` as it is defined, on a card; what others do in Python may change."""
        return (type(model) is Transformer and getattr(forward, "__func__", None) is Transformer.decode
                and on_a_card(model) and all(
                    type(x).__module__.split(".")[0] in OURS and not any(callable(getattr(type(x), name, None))
                                                                    for name in vars(x))
                    for x in model.modules()))

    def __call__(self, ids: Any, beside: Mapping[str, Any], rules: Callable[[int], Iterable[Any]]) -> Any:
        """What follows on ids (B, K, length), on the host; None if the step cannot be recorded."""
        cache: Cache = self.cache
        texts, hypotheses, length = ids.shape
        places, seen = cache.following(1)
        room, *_ = [layer.tokens.make_room(len(places)) for layer in cache.layers.values()]
        visible = np.zeros((texts, hypotheses, room), bool)
        visible[:, :, :len(places)] = True if seen is None else seen
        numbers = np.array([length - 1, *range(len(places) - hypotheses, len(places)), *ids[:, :, -1].flat])
        step = np.concatenate([numbers.view(np.uint8), visible.ravel().view(np.uint8)])
        arrays = [None if x is None else asarray_on(self.model.device, x) for x in (step, *rules(self.classes))]
        key = room, hypotheses, *(None if x is None else x.shape for x in arrays)
        if key not in self.graphs:
            self.graphs[key] = self.recorder.record(functools.partial(self._step, beside), arrays)
            cache.entries = None
        if self.graphs[key] is None:
            return None
        (found,) = self.graphs[key](*arrays)
        cache.advance(length, places, seen)
        for layer in cache.layers.values():
            layer.tokens.used = len(places)
        return found

    def _step(self, beside: Mapping[str, Any], step: Any, *rules: Any) -> list[Any]:
        """What the graph does: it writes to the buffers of the cache, and reads them."""
        cache: Cache = self.cache
        texts, hypotheses = cache.texts, cache.hypotheses
        end = 8 * (1 + hypotheses + texts * hypotheses)  # bytes of the numbers
        cache.past, cache.entries, ids = xp(step).split(step[:end].view(np.int64), [1, 1 + hypotheses])
        cache.visible = step[end:].view(bool).reshape((texts, 1, hypotheses, -1))
        hidden = self.model.decoder(ids[:, None], beside["memory"], None, beside["memory_mask"], cache=cache)
        return [self.choose(self.model.logits(hidden).data[:, -1], *rules)]


@functools.cache
def recorder(device: str, thread: int) -> Recorder:
    """Of all searches of a thread on a device: the memory of the graphs of one serves the next."""
    return Recorder()
