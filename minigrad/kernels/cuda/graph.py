"""A computation recorded as a CUDA graph: one launch in place of hundreds, which take longer than small kernels run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from minigrad import random
from minigrad.device import device_of, on_device_of

Arrays = Sequence[Any]


class Recorded:
    """A function of arrays of CuPy that launches the same kernels for all arguments of the same shapes.

    The first call with new shapes runs it, the second records it, and this one and all later ones launch the graph.
    What it returns is then overwritten by the next call. It must not wait for the GPU, read or write anything on the
    host that changes, or send arrays; other arrays that it uses must stay where they are. A function that launches what
    cannot be recorded (a product of CuPy's) is run each time.

    Args:
        function: of arrays, which returns a list of arrays.
    """

    def __init__(self, function: Callable[..., Arrays]) -> None:
        self.function = function
        self.cuda = importlib.import_module("cupy").cuda
        self.pool = self.cuda.MemoryPool()  # of all graphs: they run one after the other
        self.graphs: dict[Any, Any] = {}

    def __call__(self, *arrays: Any) -> Arrays:
        """The function of these arrays."""
        key = tuple((array.shape, array.dtype) for array in arrays)
        with on_device_of(arrays[0]), self.cuda.using_allocator(self.pool.malloc):
            if key not in self.graphs:  # compiles, and takes the memory
                self.graphs[key] = self.record
                return self.function(*arrays)
            if self.graphs[key] == self.record:
                self.graphs[key] = self.record(arrays)
            return self.graphs[key](*arrays)

    def record(self, arrays: Arrays) -> Callable[..., Arrays]:
        """A function that copies its arguments to where the graph expects them, and launches it."""
        device, inputs = device_of(arrays[0]), [array.copy() for array in arrays]
        before = random.get_state()
        self.cuda.get_current_stream().synchronize()
        with self.cuda.Stream(non_blocking=True) as stream, random.recorded(device):
            stream.begin_capture()
            try:
                outputs = self.function(*inputs)
            except Exception:
                random.set_state(before)
                ended(stream)
                raise
            graph = stream.end_capture()
        calls = random.get_state()["call"] - before["call"]
        random.set_state(before)

        def launch(*arrays: Any) -> Arrays:
            for mine, array in zip(inputs, arrays, strict=True):
                mine[...] = array
            random.again(device, calls)
            graph.launch(self.cuda.get_current_stream())
            return outputs

        return launch


def ended(stream: Any) -> None:
    """End a recording that failed."""
    try:
        stream.end_capture()
    except Exception:  # noqa: BLE001 - the recording is void, and that is what CUDA says
        pass
