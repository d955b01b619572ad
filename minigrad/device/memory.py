"""How much of a GPU's memory is in use."""

from __future__ import annotations

from typing import NamedTuple

from minigrad.device.devices import cuda_device, module_for, parse_device


class MemoryUse(NamedTuple):
    """Bytes of one GPU's memory, at one moment.

    CuPy keeps the memory of deleted arrays in a pool: ``held - used`` serves new arrays without an allocation on the
    GPU. `free` is what no program has taken, neither this one's pool nor others.

    Attributes:
        used: what arrays that are alive take of the pool.
        held: what the pool has taken from the GPU.
        free: what is left on the GPU.
        total: what the GPU has.
    """

    used: int
    held: int
    free: int
    total: int


def memory_use(device: str) -> MemoryUse | None:
    """How much memory of `device` is in use; None for the host. It does not synchronise.

    Raises:
        DeviceError: there is no such GPU.
    """
    if parse_device(device) == "cpu":
        return None
    free, total = cuda_device(device).mem_info
    return MemoryUse(*pool_use(device), int(free), int(total))


def pool_use(device: str) -> tuple[int, int]:
    """`MemoryUse.used` and `MemoryUse.held` of a GPU, which CuPy knows without a call to the driver."""
    with cuda_device(device):
        pool = module_for(device).get_default_memory_pool()
        return int(pool.used_bytes()), int(pool.total_bytes())
