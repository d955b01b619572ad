"""How an optimizer walks over parameters: few calls for many small ones, cache-sized blocks for large ones.

An update rule is a dozen element-wise operations. Applied to whole arrays, each of them streams its operands
from main memory; applied to blocks of `BLOCK` elements, all of them but the first find their operands in the
cache. For a bias of 128 elements the calls cost more than the memory; so small parameters are *packed*:
their state lies end to end in one flat array, and one block update serves them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigrad.device import asarray_on, xp

Array = Any  # numpy.ndarray, or the array of a CuPy-like module

BLOCK = 65_536  # elements; in float32 a parameter, its gradient, Adam's state and two temporaries make 1.5 MiB
PIECE = 2 * BLOCK  # what threads share out between them
WORTH_A_THREAD = 1 << 20  # elements, which Adam takes 2 ms for; to wake a thread up and to wait for it takes 0.1 ms
SMALL_ON_HOST = 8_192  # a larger array costs more to copy into a pack than its calls cost
SMALL_ON_GPU = 1 << 20  # a kernel launch takes as long as an operation on about a million elements


class Placement(NamedTuple):
    """What decides where and how the state of one parameter is stored."""

    group: int
    device: str
    dtype: np.dtype
    shape: tuple[int, ...]
    state_names: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def state_dtype(self) -> np.dtype:
        """The parameter's own; float32 for float16, in which squared gradients below 6e-8 would vanish."""
        return np.dtype(np.float32) if self.dtype == np.float16 else self.dtype


class Pack:
    """Parameters of one group, device and dtype, whose state lies end to end in flat arrays.

    Attributes:
        group: index of the parameter group.
        members: positions of the parameters, ascending.
        dtype: of the state and of the arithmetic.
        state: a flat array for each of the optimizer's state names, zero at first.
    """

    def __init__(self, members: Sequence[int], placements: Sequence[Placement]) -> None:
        first = placements[members[0]]
        self.group, self.device, self.dtype = first.group, first.device, first.state_dtype
        self.members = list(members)
        self.spans: dict[int, slice] = {}
        end = 0
        for member in members:
            start, end = end, end + placements[member].size
            self.spans[member] = slice(start, end)
        self.state = {name: asarray_on(self.device, np.zeros(end, self.dtype)) for name in first.state_names}

    def state_of(self, member: int, shape: tuple[int, ...]) -> dict[str, Array]:
        """The state arrays of one parameter, as views of its shape."""
        return {name: flat[self.spans[member]].reshape(shape) for name, flat in self.state.items()}


def make_packs(placements: Sequence[Placement]) -> list[Pack]:
    """Put small parameters of a kind together, up to one block of them, and every other one alone."""
    packs: list[Pack] = []
    open_packs: dict[Any, list[int]] = {}
    for position, placement in enumerate(placements):
        on_host = placement.device == "cpu"
        if placement.size > (SMALL_ON_HOST if on_host else SMALL_ON_GPU):
            packs.append(Pack([position], placements))
            continue
        kind = placement._replace(shape=())
        members = open_packs.setdefault(kind, [])
        if on_host and sum(placements[i].size for i in members) + placement.size > BLOCK:
            packs.append(Pack(members, placements))
            members = open_packs[kind] = []
        members.append(position)
    packs.extend(Pack(members, placements) for members in open_packs.values())
    return packs


class Scratch:
    """Flat arrays that are reused from step to step; each grows to the largest length asked of it."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, str, np.dtype], Array] = {}

    def get(self, name: str, like: Array, dtype: np.dtype, length: int, device: str) -> Array:
        """`length` elements, not initialised, on the current device, by the namespace of `like`."""
        key = (name, device, dtype)
        buffer = self._buffers.get(key)
        if buffer is None or buffer.size < length:
            buffer = self._buffers[key] = xp(like).empty(length, dtype)
        return buffer[:length]


class Piece(NamedTuple):
    """Parameters of a pack that are updated together, or a part of one: what a thread takes."""

    pack: Pack
    step: Any  # an int, or where updates may be skipped on a GPU a 0-d array there
    values: list[Array]
    gradients: list[Array]
    state: list[Array]  # flat, of all the values end to end

    @property
    def size(self) -> int:
        """The number of elements."""
        return sum(value.size for value in self.values)


def pieces(pack: Pack, members: list[int], values: list[Array], gradients: list[Array], step: Any) -> list[Piece]:
    """Neighbouring `members` of a pack; a large parameter whose memory is flat comes in several pieces."""
    span = slice(pack.spans[members[0]].start, pack.spans[members[-1]].stop)
    state = [flat[span] for flat in pack.state.values()]
    whole = Piece(pack, step, values, gradients, state)
    if pack.device != "cpu" or not _in_place(whole):
        return [whole]
    p, g = values[0].reshape(-1), gradients[0].reshape(-1)
    parts = [slice(start, start + PIECE) for start in range(0, p.size, PIECE)]
    return [Piece(pack, step, [p[part]], [g[part]], [flat[part] for flat in state]) for part in parts]


class Block(NamedTuple):
    """Flat arrays of one length. A rule changes `p` and `state` in place, and reads `g`."""

    p: Array
    g: Array
    state: list[Array]


def blocks(piece: Piece, scratch: Scratch) -> Iterator[Block]:
    """Visit a piece block by block, and write the changed values back.

    One contiguous array is visited where it lies. Several, or one whose memory is not contiguous or not of the pack's
    dtype, are copied end to end into scratch first, and copied back after the last block. The caller makes their device
    current.
    """
    values, size, dtype, device = piece.values, piece.size, piece.pack.dtype, piece.pack.device
    first, in_place = values[0], _in_place(piece)
    if in_place:
        p, g = first.reshape(-1), piece.gradients[0].reshape(-1)
    else:
        p = scratch.get("p", first, dtype, size, device)
        g = scratch.get("g", first, dtype, size, device)
        xp(first).concatenate(values, axis=None, out=p)
        xp(first).concatenate(piece.gradients, axis=None, out=g)

    length = max(1, min(size, BLOCK) if device == "cpu" else size)
    for start in range(0, size, length):
        part = slice(start, min(start + length, size))
        yield Block(p[part], g[part], [flat[part] for flat in piece.state])

    if not in_place:
        start = 0
        for value in values:
            value[...] = p[start : start + value.size].reshape(value.shape)
            start += value.size


def _in_place(piece: Piece) -> bool:
    return len(piece.values) == 1 and all(_is_flat(one, piece.pack.dtype) for one in (*piece.values, *piece.gradients))


def _is_flat(array: Array, dtype: np.dtype) -> bool:
    return array.dtype == dtype and array.flags.c_contiguous
