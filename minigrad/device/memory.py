"""How much of a GPU's memory is in use."""

from __future__ import annotations

from minigrad.device.devices import module_for, on_device


def pool_use(device: str) -> tuple[int, int]:
    """Bytes that live arrays take of CuPy's pool on a GPU, and bytes that the pool has taken from the GPU.

    CuPy keeps the memory of deleted arrays in its pool, and knows both numbers without a call to the driver.
    """
    with on_device(device):
        pool = module_for(device).get_default_memory_pool()
        return int(pool.used_bytes()), int(pool.total_bytes())
