"""The KV cache: the keys and values of all tokens so far, for every attention of a model.

A new token attends to all tokens before it, and none of them attends to it. Their keys and values therefore stay the
same: they are computed once, written to a buffer, and read from there in every step. Hardly any step copies them: new
keys and values fill free room at the end of the buffer, and attention reads a view of the filled part.

Beam search has K hypotheses of each text. They share the buffer of their text, so that a choice among them moves
nothing: attention treats their queries like those of one text, and a mask says which keys each may see.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from minigrad import Tensor, is_grad_enabled
from minigrad import functional as F
from minigrad.device import asarray_on, device_of, on_device_of, to_device, xp
from minigrad.functional.attention import join_heads
from minigrad.functional.embedding import integer_ids
from minigrad.tensor import as_tensor

FIRST_ROOM = 32  # tokens of each hypothesis for which a buffer gets room, at least


class Cache:
    """What a model keeps of the tokens that it has read: ``model(ids, cache=cache)`` reads those that are new.

    ```python
    cache = Cache()
    logits = model(ids[:, :5], cache=cache)  # those of model(ids), for the first five tokens
    logits = model(ids, cache=cache)  # for the others
    ```

    A forward that takes one calls `begin` with all ids so far, reads those after `past`, and hands ``cache[i]`` to its
    i-th layer, whose attentions get ``cache[i].tokens`` and ``cache[i].memory``. After a call that has raised, begin
    with a new one. One thread uses a cache at a time.

    An entry is the key and value of one token, at one index of the buffers. Its place is the token's place in the text.
    A step with a beam of K hypotheses adds K entries at one place. A beam of K = 2 on one text, over two steps:

    ======================================  ===============  =========================================
    read                                    places           seen (B, K, entries)
    ======================================  ===============  =========================================
    the prompt ``a``                        [0]              None: all
    ``ab`` and ``ac``, which extend it      [0, 1, 1]        ab [1, 1, 0], ac [1, 0, 1]
    ``acd`` and ``ace``, both after ``ac``  [0, 1, 1, 2, 2]  acd [1, 0, 1, 1, 0], ace [1, 0, 1, 0, 1]
    ======================================  ===============  =========================================

    The buffers, (1, H, 32, D), have room beyond their 1, 3 and 5 entries. The entry of ``b`` stays there, although the
    beam dropped ``ab``: no hypothesis sees it.

    Attributes:
        length: the number of tokens that it holds of each text, 3 at the end of the example.
        past: the number of tokens before those that are being read, 2 at its end.
        texts: B.
        hypotheses: K, of each text.
        layers: what each layer keeps, by its number.
        places: the place in its text of each entry, (entries,); the same for all texts.
        seen: the entries that each hypothesis sees, (B, K, entries); None: all.
        visible: `seen` on the model's device, for all heads, (B, 1, K, entries).
        columns: `places` on the model's device: the columns to take of a mask over the tokens of a text.
        entries: in a step of `RecordedSteps` those of the new tokens, (K,), on the model's device; else None. Such a
            step reads all that the buffers have room for, and `past` is an array (1,).
    """

    def __init__(self) -> None:
        self.length = self.texts = 0
        self.past: Any = 0
        self.hypotheses = 1
        self.layers = defaultdict[int, LayerCache](lambda: LayerCache(Kept(self, True), Kept(self, False)))
        self.places = np.zeros(0, np.int64)
        self.seen: NDArray[np.bool_] | None = None
        self.visible: Any = None
        self.columns: Any = None
        self.entries: Any = None

    def __getitem__(self, number: int) -> LayerCache:
        return self.layers[number]

    def begin(self, ids: Any) -> int:
        """Begin to read the tokens of ids (B · K, T) after the first `length`; returns how many those are, `past`.

        Raises:
            ValueError: another batch; nothing new; several new tokens of one of several hypotheses; a layer that was
                handed its part, and did not keep the tokens that were read.
            RuntimeError: outside of `minigrad.no_grad`.
        """
        if is_grad_enabled():
            raise RuntimeError("Cache: there is no gradient through a cache; use it within minigrad.no_grad()")
        rows, length = ids.shape
        self.texts, new = self.texts or rows, length - self.length
        if rows != self.texts * self.hypotheses or new < 1 or (self.seen is not None and new > 1):
            raise ValueError(f"Cache: it holds {self.length} tokens of each of {self.texts} texts with "
                             f"{self.hypotheses} hypotheses, and cannot go on with ids of shape {tuple(ids.shape)}")
        if self.layers and not self.holds():
            raise ValueError("Cache: a layer did not keep the keys of all tokens that were read; its attention must "
                             "call cache.attend, or the model do without a cache")
        self.advance(length, *self.following(new))
        if self.seen is not None:
            self.visible, self.columns = (asarray_on(device_of(ids), x) for x in (self.seen[:, None], self.places))
        return self.past

    def following(self, new: int) -> tuple[Any, Any]:
        """`places` and `seen` with this number of tokens more."""
        places = np.concatenate([self.places, np.arange(self.length, self.length + new).repeat(self.hypotheses)])
        itself = np.eye(self.hypotheses, dtype=bool)[None].repeat(self.texts, axis=0)
        return places, None if self.seen is None else np.concatenate([self.seen, itself], axis=2)

    def advance(self, length: int, places: Any, seen: Any) -> None:
        """Let so many tokens be read, and the entries be those."""
        self.past, self.length, self.places, self.seen = self.length, length, places, seen

    def holds(self, memory: bool = False) -> bool:
        """Whether each layer has all tokens that were read, and the memory, if there is one.

        Not, where a model or a part of it ignores the cache; nor without layers.
        """
        return bool(self.layers) and all(
            layer.tokens.used == len(self.places) and (layer.memory.used > 0 or not memory)
            for layer in self.layers.values())

    def together(self, x: Any) -> Any:
        """What is of each hypothesis as of its text: a raw array (B · K, H, T, ·) → (B, H, K · T, ·)."""
        if self.hypotheses == 1:
            return x
        apart = x.reshape((self.texts, self.hypotheses, *x.shape[1:])).swapaxes(1, 2)  # (B, H, K, T, ·)
        return apart.reshape((self.texts, x.shape[1], -1, x.shape[3]))

    def mask(self, mask: Any) -> Any:
        """The mask of self-attention, broadcastable to (B · K, H, T, length), as one for (B, H, K · T, entries)."""
        if self.seen is None and self.entries is None:
            return mask
        if mask is None:
            return self.visible
        with on_device_of(self.visible):
            own = to_device(mask, device_of(self.visible))[..., self.columns]
            return self.visible & (self.together(own) if own.ndim == 4 and len(own) > 1 else own)

    def select(self, texts: Any, parents: Any = None) -> None:
        """Make these texts, in this order, the batch, and extend these hypotheses of each.

        Args:
            texts: the numbers of the texts, (B,), possibly repeated.
            parents: the number of the hypothesis of its text that each new one extends, (B, K); None: its own.

        Raises:
            TypeError, IndexError: no indices of texts, such as a boolean mask.
        """
        texts = integer_ids(texts, "Cache: the numbers of texts", self.texts or None)
        parents = np.arange(self.hypotheses) if parents is None else parents
        if self.seen is not None or parents.shape[-1] > 1:
            seen = np.ones((self.texts, 1, len(self.places)), bool) if self.seen is None else self.seen
            self.seen = seen[texts[:, None], parents]
        if not np.array_equal(texts, np.arange(self.texts)):
            for kept in chain(*self.layers.values()):
                kept.select(texts)
        self.texts, self.hypotheses = len(texts), parents.shape[-1]


class LayerCache(NamedTuple):
    """What the cache has for one layer: `Kept` keys and values of its attention to tokens, and of that to a memory."""

    tokens: Kept
    memory: Kept


class Kept:
    """The keys and values of one attention: in buffers (B, H, room, features) that at least double when they are full.

    Args:
        cache: to which it belongs.
        grows: whether there are new ones in every call, as of tokens; or those of the first call serve in all.
    """

    def __init__(self, cache: Cache, grows: bool) -> None:
        self.cache, self.grows = cache, grows
        self.used = 0  # entries of the room
        self.buffers: list[Any] = []  # keys and values

    @property
    def past(self) -> Any:
        """The number of tokens before those that are being read, see `Cache`."""
        return self.cache.past

    def attend(self, queries: Any, make: Callable[[], Sequence[Any]], mask: Any, **options: Any) -> Tensor:
        """The attention of all heads to all keys and values, joined: (B · K, T, ·).

        Args:
            queries: of new tokens, a raw array (B · K, H, T, ·).
            make: makes the keys and values of new tokens, raw arrays (B · K, H, T, ·), or of the memory.
            mask: which keys the queries see, broadcastable to (B · K, H, T, tokens).
            options: of `scaled_dot_product_attention`.

        Raises:
            ValueError: an attention that is called more than once, or not at each reading.
        """
        if self.grows or not self.buffers:
            with on_device_of(queries):
                self._append([self.cache.together(x) for x in make()])
        mask = self.cache.mask(mask) if self.grows else mask
        end = self.used if self.cache.entries is None else None
        keys, values = (as_tensor(buffer[:, :, :end]) for buffer in self.buffers)
        heads = F.scaled_dot_product_attention(as_tensor(self.cache.together(queries)), keys, values, mask, **options)
        return as_tensor(join_heads(heads.data).reshape((len(queries), queries.shape[2], -1)))

    def _append(self, made: list[Any]) -> None:
        new: Any = self.cache.entries
        if new is None:
            new, self.used = slice(self.used, self.used + made[0].shape[2]), self.used + made[0].shape[2]
            if self.grows and self.used != len(self.cache.places):
                raise ValueError(f"Cache: an attention has keys of {self.used} tokens, and the model has read "
                                 f"{len(self.cache.places)}; each attention of a layer is called once at each reading")
            self.buffers = self.buffers or [x[:, :, :0] for x in made]
            self.make_room(self.used)
        for buffer, x in zip(self.buffers, made, strict=True):
            buffer[:, :, new] = x

    def make_room(self, entries: int) -> int:
        """Let the buffers have room for so many entries; returns for how many they have."""
        if self.buffers[0].shape[2] < entries:
            more = max(entries, FIRST_ROOM * self.cache.hypotheses) if self.grows else entries  # a memory needs no more
            self.buffers = [xp(x).pad(x, ((0, 0), (0, 0), (0, more), (0, 0))) for x in self.buffers]
        return int(self.buffers[0].shape[2])

    def select(self, texts: NDArray[np.int64]) -> None:
        """Make these texts the batch: in place, by the rows that move, unless there are more of them."""
        moved = np.flatnonzero(texts != np.arange(len(texts)))
        for number, buffer in enumerate(self.buffers):
            with on_device_of(buffer):
                rows, places = (asarray_on(device_of(buffer), x) for x in (texts, moved))
                if len(texts) > len(buffer):
                    buffer = buffer[rows]
                else:
                    buffer[places, :, :self.used] = buffer[rows[places], :, :self.used]
                self.buffers[number] = buffer[:len(texts)]
