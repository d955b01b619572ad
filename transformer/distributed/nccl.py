"""The transport between GPUs: buckets travel by NCCL, through `cupyx.distributed`, and not through the host.

Untried on a card: it has run on a stand-in for CuPy, whose NCCL is MPI. MPI starts the ranks and carries all the rest.

NCCL's calls are put into the current stream, among the kernels, so that nothing here waits: what an array will contain
is known to the stream. Every rank must put the same calls in the same order, and each call must be of the same size
everywhere. `Exchange` and the equal parts of a `Bucket` see to that.

A call of NCCL does not end if another rank has gone. Then the launcher ends this process.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.device import cuda_device, module_for, on_device
from minigrad.parallel import Span

from transformer.distributed.buckets import Bucket
from transformer.distributed.launch import NEEDS_GPUS, LaunchError
from transformer.distributed.ranks import Ranks


class NCCLTransport:
    """Carries flat arrays between GPUs; its methods are those of `transformer.distributed.buckets.Transport`.

    Args:
        ranks: all processes of MPI, each with a GPU of its own.
        device: the GPU of this rank.

    Raises:
        LaunchError: NCCL is missing on a rank, a rank has no GPU, or two have the same.
    """

    def __init__(self, ranks: Ranks, device: str) -> None:
        self.ranks, self._device = ranks, device
        _check(ranks, device)
        with on_device(device):  # CuPy sends NCCL's id over MPI.COMM_WORLD, and waits for all processes
            self._group = importlib.import_module("cupyx.distributed").init_process_group(
                ranks.size, ranks.rank, use_mpi=True)

    def to_owners(self, bucket: Bucket, spans: Sequence[Sequence[Span]]) -> tuple[list[Any], dict[Span, Any], Any]:
        """Send each owner its part; returns no requests, what arrives here by span, and an array for the total.

        A rank with fewer spans than another sends arrays that nobody looks at, since NCCL has all ranks send as much.
        """
        rows, received = bucket.take(), dict[Span, Any]()
        with on_device(self._device):
            for turn in range(max(map(len, spans))):
                sent = rows[turn] if turn < len(rows) else self._room(bucket.length, bucket.dtype)
                room = self._room((self.ranks.size, bucket.part), bucket.dtype)
                self._group.all_to_all(sent.reshape(room.shape), room)
                received |= {own[turn]: room[rank] for rank, own in enumerate(spans) if turn < len(own)}
            return [], received, self._room(bucket.length, bucket.dtype)

    def to_all(self, bucket: Bucket, part: Any, total: Any) -> list[Any]:
        """Send the total of this rank's part to all; returns no requests. All parts come into `total`."""
        self._gather(part, total)
        return []

    def arrived(self, requests: list[Any]) -> bool:
        """True: what comes after in the stream finds it there."""
        return True

    def told(self, losses: Sequence[Any]) -> int:
        """How many they are; the losses themselves stay on the GPU."""
        return len(losses)

    def losses(self, own: Sequence[Any], told: Sequence[int]) -> list[Any]:
        """The losses of all shards, raw float64 numbers on the GPU, from those of each rank's own."""
        with on_device(self._device):
            row, rows = (self._room(shape, np.float64) for shape in (max(told), (self.ranks.size, max(told))))
            for number, loss in enumerate(own):
                row[number] = loss
            self._gather(row, rows)
            return [rows[rank, number] for rank, count in enumerate(told) for number in range(count)]

    def _gather(self, part: Any, total: Any) -> None:
        """Send an array to all; those of all ranks come into `total`, one after the other."""
        with on_device(self._device):
            self._group.all_gather(part, total, part.size)

    def _room(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        return module_for(self._device).empty(shape, dtype)


def _check(ranks: Ranks, device: str) -> None:
    """LaunchError, the same on all ranks, if NCCL cannot connect them; it would wait for ever."""
    here = [ranks.host(ranks.rank), cuda_device(device).pci_bus_id, _has_nccl()] if device != "cpu" else None
    told = ranks.exchange(here)
    if None in told:
        raise LaunchError(NEEDS_GPUS)
    for rank, (_, _, has_nccl) in enumerate(told):
        if not has_nccl:
            raise LaunchError(f"CuPy does not find NCCL on {ranks.name(rank)}: pip install nvidia-nccl-cu12  (cu13 for "
                              "CUDA 13), or give --distributed mpi")
    cards = [card for *card, _ in told]
    for rank, card in enumerate(cards):
        if cards.index(card) < rank:
            raise LaunchError(f"{ranks.name(cards.index(card))} and {ranks.name(rank)} have the same GPU, {card[1]}, "
                              "and NCCL needs one for each rank: start fewer ranks, or give --distributed mpi")


def _has_nccl() -> bool:
    return bool(importlib.import_module("cupy.cuda.nccl").available)
