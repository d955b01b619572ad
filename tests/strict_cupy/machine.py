"""The stand-in's machine: two devices, a current one per thread, and the counts of waits and of uploads."""

from __future__ import annotations

import threading
from collections import Counter
from types import SimpleNamespace
from typing import Any

from tests.strict_cupy.memory import OutOfMemoryError, memory

CAPABILITIES = ("80", "75")  # of each device
DEVICES = len(CAPABILITIES)

# How often the host waited for the device, by cause: "float()", "get", "boolean mask", ...
synchronizations: Counter[str] = Counter()
# How often a host array was copied to the device, by cause ("array", "asarray", "index", ...), and its bytes.
# Single numbers (0-d) go as a kernel's arguments, and are not counted; nor is what CuPy sends of its own accord.
uploads: Counter[str] = Counter()
uploaded_bytes: Counter[str] = Counter()

_thread = threading.local()


def clear() -> None:
    """Begin to count anew, with the memory's limit as it was at first; arrays that are alive stay."""
    for counter in (synchronizations, uploads, uploaded_bytes):
        counter.clear()
    memory.clear()


def upload(host: Any, cause: str) -> None:
    """Count the copy of a host array to the device."""
    if host.ndim:
        uploads[cause] += 1
        uploaded_bytes[cause] += host.nbytes


class CUDARuntimeError(RuntimeError):
    """What the CUDA runtime reports."""


def current_device() -> int:
    return getattr(_thread, "device", 0)


class Device:
    """``cupy.cuda.Device``: a number, and a context in which it is the current device."""

    def __init__(self, device: int | None = None) -> None:
        self.id = current_device() if device is None else int(device)
        self._before: list[int] = []

    def __enter__(self) -> Device:
        self._before.append(current_device())
        self.use()
        return self

    def __exit__(self, *exception: object) -> None:
        _thread.device = self._before.pop()

    def use(self) -> None:
        if not 0 <= self.id < DEVICES:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        _thread.device = self.id

    @property
    def compute_capability(self) -> str:
        return CAPABILITIES[self.id]

    @property
    def pci_bus_id(self) -> str:
        return f"0000:{self.id:02X}:00.0"

    def synchronize(self) -> None:
        synchronizations["synchronize"] += 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __int__(self) -> int:
        return self.id


class MemoryPool:
    """``cupy.cuda.MemoryPool``, as far as it tells what it holds of the current device's memory."""

    def used_bytes(self) -> int:
        return memory.used[current_device()]

    def total_bytes(self) -> int:
        return memory.held[current_device()]


runtime = SimpleNamespace(CUDARuntimeError=CUDARuntimeError, getDeviceCount=lambda: DEVICES)
cuda = SimpleNamespace(
    Device=Device,
    MemoryPool=MemoryPool,
    is_available=lambda: True,
    memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    runtime=runtime,
)
