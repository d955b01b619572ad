"""The stand-in's ``cupyx.distributed``: a group of ranks whose NCCL is MPI, for programs that mpirun starts.

As NCCL does, it takes contiguous arrays of the group's device alone, and as many values everywhere. Where NCCL would
wait for ever, or mix up two messages, because the ranks do not make the same calls in the same order, it raises.

`enter` puts it in the place of ``cupyx.distributed`` and ``cupy.cuda.nccl``, which programs import by name.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
from mpi4py import MPI

from tests.strict_cupy.machine import current_device
from tests.strict_cupy.ndarray import NAMES, bind, ndarray

DTYPES = "bBiIlLqQefd"  # what NCCL carries; complex numbers as pairs, which nobody here needs


class NCCLBackend:
    """``cupyx.distributed.NCCLBackend``. `calls` has the names of the calls so far."""

    def __init__(self, n_devices: int, rank: int) -> None:
        self._size, self.rank, self._device = n_devices, rank, current_device()
        self._comm = MPI.COMM_WORLD.Dup()
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        known = f"NCCLBackend.{name}" in NAMES["distributed"]
        reason = "is not modelled by the stand-in" if known else "does not exist in CuPy"
        raise AttributeError(f"NCCLBackend.{name} {reason}")

    def all_to_all(self, *args: Any, **kwargs: Any) -> None:
        bind("all_to_all", NAMES["distributed"]["NCCLBackend.all_to_all"], args, kwargs)
        sent, received = args
        if sent.shape[0] != self._size or received.shape[0] != self._size:
            raise RuntimeError(f"all_to_all requires {self._size} elements in the first dimension")
        self._begin("all_to_all", sent, received, sent[0].size)
        if received[0].size != sent[0].size:
            raise RuntimeError("NCCL would write beyond the array, or leave some of it")
        self._comm.Alltoall(bytes_of(sent), bytes_of(received))

    def all_gather(self, *args: Any, **kwargs: Any) -> None:
        bind("all_gather", NAMES["distributed"]["NCCLBackend.all_gather"], args, kwargs)
        sent, received, count = args
        self._begin("all_gather", sent, received, count)
        if sent.size < count or received.size < count * self._size:
            raise RuntimeError("NCCL would read or write beyond the array")
        self._comm.Allgather(bytes_of(sent)[:count * sent.itemsize],
                             bytes_of(received)[:count * sent.itemsize * self._size])

    def _begin(self, name: str, sent: ndarray, received: ndarray, count: int) -> None:
        """Check the arrays, and that all ranks make this call now, with so many values."""
        for array in (sent, received):
            if type(array) is not ndarray or array._device != self._device or current_device() != self._device:
                raise RuntimeError("NCCL takes arrays of the group's device, while it is the current one")
            if not array.flags.c_contiguous and not array.flags.f_contiguous:
                raise RuntimeError("NCCL requires arrays to be either c- or f-contiguous")
            if array.dtype.char not in DTYPES or array.dtype != sent.dtype:
                raise TypeError(f"Unknown dtype {array.dtype} for NCCL, or another than the one sent")
        self.calls.append(name)
        own = f"call {len(self.calls)}: {name} of {count} {sent.dtype}"
        told = self._comm.allgather(own)
        if told != [own] * self._size:
            raise RuntimeError(f"the ranks make different calls of NCCL: {told}")


def bytes_of(array: ndarray) -> np.ndarray:
    return array._host.reshape(-1, order="A").view(np.uint8)


groups: list[NCCLBackend] = []


def init_process_group(*args: Any, **kwargs: Any) -> NCCLBackend:
    bind("init_process_group", NAMES["distributed"]["init_process_group"], args, kwargs)
    if not kwargs.get("use_mpi"):
        raise RuntimeError("the stand-in has no server for ranks without MPI")
    groups.append(NCCLBackend(*args))
    return groups[-1]


def enter(available: bool = True) -> None:
    """Be ``cupyx.distributed`` in this process. `available`: whether the library of NCCL is found."""
    module, nccl = ModuleType("cupyx.distributed"), ModuleType("cupy.cuda.nccl")
    module.init_process_group, nccl.available = init_process_group, available  # type: ignore[attr-defined]
    sys.modules |= {"cupyx.distributed": module, "cupy.cuda.nccl": nccl}
