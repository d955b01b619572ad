"""The KV cache: the keys and values of all tokens so far, for every attention of the decoder.

A new token attends to all tokens before it, and none of them attends to it. Their keys and values therefore stay the
same: they are computed once, written to a buffer, and read from there in every step. No step copies them: new keys and
values fill free room at the end of the buffer, and attention reads a view of the filled part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device import asarray_on, device_of, on_device_of, xp

FIRST_ROOM = 32  # the size of a new buffer, in tokens


class Rows:
    """The indices of the rows that form the new batch, possibly repeated; uploaded once, for all buffers.

    Attributes:
        host: the indices, on the host.
        moved: the places whose row changes.
    """

    def __init__(self, rows: Any) -> None:
        self.host = np.asarray(rows)
        self.moved = np.flatnonzero(self.host != np.arange(len(self.host)))
        self._sent: dict[str, tuple[Any, Any]] = {}

    def on(self, device: str) -> tuple[Any, Any]:
        """The indices and `moved`, on `device`."""
        if device not in self._sent:
            self._sent[device] = asarray_on(device, self.host), asarray_on(device, self.moved)
        return self._sent[device]


class LayerCache:
    """Keys and values of one decoder layer, raw arrays in buffers that double when they are full.

    Attributes:
        length: the number of target tokens of each sentence in it.
        memory: keys and values of the encoder's output, (B, H, S, D/H) each; None before `keep_memory`.
    """

    def __init__(self) -> None:
        self.length = 0
        self._keys: Any = None  # (B, H, room, D/H)
        self._values: Any = None
        self.memory: tuple[Any, Any] | None = None

    def append(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Add the keys and values of new tokens, each (B, H, T, D/H).

        Returns:
            The keys and values of all tokens so far, views of the buffers, valid until the next call.
        """
        end = self.length + keys.shape[2]
        self._keys = with_room(self._keys, keys, self.length, end)
        self._values = with_room(self._values, values, self.length, end)
        with on_device_of(keys):
            self._keys[:, :, self.length:end] = keys
            self._values[:, :, self.length:end] = values
        self.length = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def keep_memory(self, keys: Any, values: Any) -> None:
        """Keep the keys and values of the encoder's output, each (B, H, S, D/H)."""
        with on_device_of(keys):  # contiguous, since every step reads them
            self.memory = xp(keys).ascontiguousarray(keys), xp(keys).ascontiguousarray(values)

    def select(self, rows: Rows) -> None:
        """Make these rows, in this order, the batch."""
        if self._keys is not None:
            self._keys, self._values = (select_rows(buffer, rows, self.length) for buffer in (self._keys, self._values))
        if self.memory is not None:
            keys, values = self.memory
            self.memory = select_rows(keys, rows, keys.shape[2]), select_rows(values, rows, keys.shape[2])

    def keep(self, tokens: Any) -> None:
        """Keep these tokens alone of each sentence: `tokens`, indices (B, fewer than `length`)."""
        if self._keys is not None:
            index = asarray_on(device_of(self._keys), tokens)
            with on_device_of(self._keys):
                sentences = xp(index).arange(len(index))[:, None]
                for buffer in (self._keys, self._values):  # the index gives (B, tokens, H, D/H)
                    buffer[:, :, :tokens.shape[1]] = buffer[sentences, :, index].swapaxes(1, 2)
        self.length = tokens.shape[1]


def with_room(buffer: Any, like: Any, used: int, needed: int) -> Any:
    """`buffer` if it has room for `needed` tokens; else a buffer of at least twice the size, with its `used` tokens."""
    if buffer is not None and buffer.shape[2] >= needed:
        return buffer
    room = max(needed, FIRST_ROOM if buffer is None else 2 * buffer.shape[2])
    with on_device_of(like):
        larger = xp(like).empty((*like.shape[:2], room, like.shape[3]), like.dtype)
        if buffer is not None:
            larger[:, :, :used] = buffer[:, :, :used]
    return larger


def select_rows(buffer: Any, rows: Rows, used: int) -> Any:
    """The rows of `buffer`, which has `used` tokens. A batch that does not grow changes in place, by rows that move."""
    indices, moved = rows.on(device_of(buffer))
    with on_device_of(buffer):
        if len(indices) > len(buffer):
            return buffer[indices]
        if moved.size:
            buffer[moved, :, :used] = buffer[indices[moved], :, :used]
        return buffer[:len(indices)]


class DecoderCache:
    """One `LayerCache` for each of `num_layers` decoder layers.

    Attributes:
        length: the number of target tokens of each sentence in it.
    """

    def __init__(self, num_layers: int) -> None:
        self.layers = [LayerCache() for _ in range(num_layers)]
        self.length = 0

    def select(self, rows: Rows) -> None:
        """Make these rows, in this order, the batch of every layer."""
        for layer in self.layers:
            layer.select(rows)

    def keep(self, tokens: Any) -> None:
        """Keep these tokens alone of each sentence, in every layer; see `LayerCache.keep`."""
        for layer in self.layers:
            layer.keep(tokens)
        self.length = tokens.shape[1]
