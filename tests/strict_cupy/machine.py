"""The stand-in's machine: two devices, a current one per thread, and the counts of waits and of uploads."""

import threading
from collections import Counter
from types import SimpleNamespace

from tests.strict_cupy.memory import OutOfMemoryError, memory

DEVICES = 2

# How often the host waited for the device, by cause: "float()", "get", "boolean mask", ...
synchronizations = Counter()
# How often a host array was copied to the device, by cause ("array", "asarray", "index", ...), and its bytes.
# Single numbers (0-d) go as a kernel's arguments, and are not counted; nor is what CuPy sends of its own accord.
uploads = Counter()
uploaded_bytes = Counter()

_thread = threading.local()


def clear():
    """Begin to count anew, with the memory's limit as it was at first; arrays that are alive stay."""
    for counter in (synchronizations, uploads, uploaded_bytes):
        counter.clear()
    memory.clear()


def upload(host, cause):
    """Count the copy of a host array to the device."""
    if host.ndim:
        uploads[cause] += 1
        uploaded_bytes[cause] += host.nbytes


class CUDARuntimeError(RuntimeError):
    """What the CUDA runtime reports."""


def current_device():
    return getattr(_thread, "device", 0)


class Device:
    """``cupy.cuda.Device``: a number, and a context in which it is the current device."""

    compute_capability = "90"

    def __init__(self, device=None):
        self.id = current_device() if device is None else int(device)
        self._before = []

    def __enter__(self):
        self._before.append(current_device())
        self.use()
        return self

    def __exit__(self, *exception):
        _thread.device = self._before.pop()

    def use(self):
        if not 0 <= self.id < DEVICES:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        _thread.device = self.id

    def synchronize(self):
        synchronizations["synchronize"] += 1

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id


class MemoryPool:
    """``cupy.cuda.MemoryPool``, as far as it tells what it holds of the current device's memory."""

    def used_bytes(self):
        return memory.used[current_device()]

    def total_bytes(self):
        return memory.held[current_device()]


runtime = SimpleNamespace(CUDARuntimeError=CUDARuntimeError, getDeviceCount=lambda: DEVICES)
cuda = SimpleNamespace(
    Device=Device,
    MemoryPool=MemoryPool,
    memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    runtime=runtime,
)
