"""The stand-in's machine: two devices, a current one per thread, and the count of host synchronisations."""

from __future__ import annotations

import threading
from collections import Counter
from types import SimpleNamespace

DEVICES = 2

# How often the host waited for the device, by cause: "float()", "get", "boolean mask", ...
synchronizations: Counter[str] = Counter()

_thread = threading.local()


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

    def synchronize(self) -> None:
        synchronizations["synchronize"] += 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __int__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"


runtime = SimpleNamespace(CUDARuntimeError=CUDARuntimeError, getDeviceCount=lambda: DEVICES)
cuda = SimpleNamespace(Device=Device, runtime=runtime, is_available=lambda: True)
