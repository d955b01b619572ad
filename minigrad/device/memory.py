"""How much of a GPU's memory is in use."""

from __future__ import annotations

from typing import Any

from minigrad.device.devices import module_for, on_device

POOLS: list[Any] = []  # CuPy's pools besides the default one: see `minigrad.kernels.cuda.graph`


def pool_use(device: str) -> tuple[int, int]:
    """Bytes that live arrays take of CuPy's pools on a GPU, and bytes that the pools have taken from the GPU.

    CuPy keeps the memory of deleted arrays in a pool, and knows both numbers without a call to the driver.
    """
    with on_device(device):
        pools = [module_for(device).get_default_memory_pool(), *POOLS]
        return sum(int(pool.used_bytes()) for pool in pools), sum(int(pool.total_bytes()) for pool in pools)
