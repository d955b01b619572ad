"""What decoding keeps between steps: the keys and values that every attention has computed already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad import Tensor
from minigrad.device import on_device_of, xp
from minigrad.tensor import as_tensor


class LayerCache:
    """Keys and values of one decoder layer, in buffers that double when they are full. For use under ``no_grad``."""

    def __init__(self) -> None:
        self.length = 0
        self._keys: Any = None  # raw arrays (B, H, capacity, D/H)
        self._values: Any = None
        self._memory: tuple[Tensor, Tensor] | None = None

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens, each (B, H, T, D/H); returns those of all tokens so far."""
        if keys.requires_grad or values.requires_grad:
            raise RuntimeError("the cache is for decoding: run the decoder under minigrad.no_grad()")
        end = self.length + keys.shape[2]
        self._keys = _with_room(self._keys, keys.data, self.length, end)
        self._values = _with_room(self._values, values.data, self.length, end)
        with on_device_of(keys.data):
            self._keys[:, :, self.length:end] = keys.data
            self._values[:, :, self.length:end] = values.data
        self.length = end
        return as_tensor(self._keys[:, :, :end]), as_tensor(self._values[:, :, :end])

    def of_memory(self, compute: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """The keys and values of the encoder's output, computed the first time."""
        if self._memory is None:
            self._memory = compute()
        return self._memory

    def select(self, rows: Any, same_memory: bool = False) -> None:
        """Keep these rows of the batch, in this order: `rows` is a raw integer array; beams and finished sentences.

        `same_memory` promises that every row takes the place of one with the same source: what is cached of the memory
        needs no copy then.
        """
        if self._keys is not None:
            with on_device_of(self._keys):
                self._keys, self._values = self._keys[rows], self._values[rows]
        if self._memory is not None and not same_memory:
            keys, values = self._memory
            with on_device_of(keys.data):
                self._memory = as_tensor(keys.data[rows]), as_tensor(values.data[rows])


def _with_room(buffer: Any, like: Any, used: int, needed: int) -> Any:
    """`buffer` if it holds `needed` tokens, else one of at least twice the size with the `used` ones copied."""
    if buffer is not None and buffer.shape[2] >= needed:
        return buffer
    capacity = max(needed, 16 if buffer is None else 2 * buffer.shape[2])
    with on_device_of(like):
        larger = xp(like).empty((*like.shape[:2], capacity, like.shape[3]), like.dtype)
        if buffer is not None:
            larger[:, :, :used] = buffer[:, :, :used]
    return larger


class DecoderCache:
    """One `LayerCache` for each decoder layer.

    Attributes:
        length: how many target tokens have been decoded.
    """

    def __init__(self, num_layers: int) -> None:
        self.layers = [LayerCache() for _ in range(num_layers)]
        self.length = 0

    def select(self, rows: Any, same_memory: bool = False) -> None:
        """Keep these rows of the batch in every layer; arguments as for `LayerCache.select`."""
        for layer in self.layers:
            layer.select(rows, same_memory)
