"""The KV cache: the keys and values that every attention of the decoder has computed already.

A new token attends to all tokens before it. Their keys and values do not change when it comes, since none of them sees
it; so they are computed once, written to a buffer, and read in every step from there. No step copies them: what is
added goes into free room at the end, and what attention gets is a view of the part that is filled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.device import asarray_on, device_of, on_device_of, xp

FIRST_ROOM = 32  # tokens that a buffer has room for at first


class Rows:
    """Which rows, in this order, are to be the batch, any number of times each; sent to a device once, for all buffers.

    Attributes:
        host: their indices.
        moved: the places that get another row than was there.
    """

    def __init__(self, rows: Any) -> None:
        self.host = np.asarray(rows)
        self.moved = np.flatnonzero(self.host != np.arange(len(self.host)))
        self._sent: dict[str, tuple[Any, Any]] = {}

    def on(self, device: str) -> tuple[Any, Any]:
        """The indices and the places that get another row, on `device`."""
        if device not in self._sent:
            self._sent[device] = asarray_on(device, self.host), asarray_on(device, self.moved)
        return self._sent[device]


class LayerCache:
    """Keys and values of one decoder layer, raw arrays in buffers that double when they are full.

    Attributes:
        length: how many target tokens of each sentence it holds.
        memory: keys and values of the encoder's output, (B, H, S, D/H) each; None until they are kept.
    """

    def __init__(self) -> None:
        self.length = 0
        self._keys: Any = None  # (B, H, room, D/H)
        self._values: Any = None
        self.memory: tuple[Any, Any] | None = None

    def append(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Add the keys and values of new tokens, each (B, H, T, D/H).

        Returns:
            Those of all tokens so far, views of the buffers, good until the next call.
        """
        end = self.length + keys.shape[2]
        self._keys = _with_room(self._keys, keys, self.length, end)
        self._values = _with_room(self._values, values, self.length, end)
        with on_device_of(keys):
            self._keys[:, :, self.length:end] = keys
            self._values[:, :, self.length:end] = values
        self.length = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def keep_memory(self, keys: Any, values: Any) -> None:
        """Keep the keys and values of the encoder's output, each (B, H, S, D/H)."""
        with on_device_of(keys):  # the features of a head next to each other: every step reads them
            self.memory = xp(keys).ascontiguousarray(keys), xp(keys).ascontiguousarray(values)

    def select(self, rows: Any) -> None:
        """Let these rows, in this order, be the batch: `Rows`, or indices on the host."""
        rows = rows if isinstance(rows, Rows) else Rows(rows)
        if self._keys is not None:
            self._keys, self._values = (_select(buffer, rows, self.length) for buffer in (self._keys, self._values))
        if self.memory is not None:
            keys, values = self.memory
            self.memory = _select(keys, rows, keys.shape[2]), _select(values, rows, keys.shape[2])

    def keep(self, tokens: Any) -> None:
        """Of each sentence keep these tokens alone: `tokens`, indices (B, fewer than `length`)."""
        if self._keys is not None:
            index = asarray_on(device_of(self._keys), tokens)
            with on_device_of(self._keys):
                sentences = xp(index).arange(len(index))[:, None]
                for buffer in (self._keys, self._values):  # (B, tokens, H, D/H) is what the index gives
                    buffer[:, :, :tokens.shape[1]] = buffer[sentences, :, index].swapaxes(1, 2)
        self.length = tokens.shape[1]


def _with_room(buffer: Any, like: Any, used: int, needed: int) -> Any:
    """`buffer` if it holds `needed` tokens, else one of at least twice the size with the `used` ones copied."""
    if buffer is not None and buffer.shape[2] >= needed:
        return buffer
    room = max(needed, FIRST_ROOM if buffer is None else 2 * buffer.shape[2])
    with on_device_of(like):
        larger = xp(like).empty((*like.shape[:2], room, like.shape[3]), like.dtype)
        if buffer is not None:
            larger[:, :, :used] = buffer[:, :, :used]
    return larger


def _select(buffer: Any, rows: Rows, used: int) -> Any:
    """The rows of `buffer`, of whose tokens `used` are filled. In place: only rows that change places are copied."""
    indices, moved = rows.on(device_of(buffer))
    with on_device_of(buffer):
        if len(indices) > len(buffer):
            return buffer[indices]
        if moved.size:
            buffer[moved, :, :used] = buffer[indices[moved], :, :used]
        return buffer[:len(indices)]


class DecoderCache:
    """One `LayerCache` for each decoder layer.

    Attributes:
        length: how many target tokens of each sentence it holds.
    """

    def __init__(self, num_layers: int) -> None:
        self.layers = [LayerCache() for _ in range(num_layers)]
        self.length = 0

    def select(self, rows: Any) -> None:
        """Let these rows, in this order, be the batch of every layer; see `LayerCache.select`."""
        rows = rows if isinstance(rows, Rows) else Rows(rows)
        for layer in self.layers:
            layer.select(rows)

    def keep(self, tokens: Any) -> None:
        """Of each sentence keep these tokens alone in every layer; see `LayerCache.keep`."""
        for layer in self.layers:
            layer.keep(tokens)
        self.length = tokens.shape[1]
