"""A computation recorded as a CUDA graph: one launch in place of hundreds, each of which takes longer than it runs."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from minigrad import random
from minigrad.device import device_of, memory, on_device_of

Arrays = Sequence[Any]
MOST = 1000  # graphs: one of a step of training takes about a megabyte


class Recorded:
    """A function of CuPy's arrays that launches the same kernels for all arguments of the same shapes.

    The first call runs it, to compile the kernels. Later ones record it once for all arguments of the same shapes, and
    launch the graph, whose results the next call overwrites. So the function must not read or change anything on the
    host that differs between calls. Where it does what cannot be recorded (to wait for the GPU, a product of CuPy's),
    it is run each time.

    Args:
        function: of arrays, which returns a list of arrays. One that it makes keeps its memory as long as the graph;
            arrays that are there before, into which it writes, serve all graphs.
    """

    def __init__(self, function: Callable[..., Arrays]) -> None:
        self.function = function
        self.cupy = importlib.import_module("cupy")
        self.stream = self.cupy.cuda.Stream(non_blocking=True)  # a pool keeps the memory of each stream apart
        self.graphs: dict[Any, Callable[..., Arrays] | None] = {}
        cuda, short = self.cupy.cuda, list[int]()

        def take(size: int) -> Any:
            try:
                return cuda.MemoryPointer(cuda.Memory(size), 0)
            except cuda.runtime.CUDARuntimeError:  # CuPy now gives back what is free, which graphs take for theirs
                short.append(size)
                raise

        self.pool, self.short = cuda.MemoryPool(take), short  # of all graphs: they run one after the other
        memory.POOLS.append(self.pool)

    def __del__(self) -> None:
        """Give back the memory."""
        memory.POOLS.remove(self.pool)

    def __call__(self, *arrays: Any, fixed: tuple[Any, ...] = ()) -> Arrays:
        """The function of these arrays; `fixed` is what else it depends on, and another has another graph."""
        key = (*fixed, *((array.shape, array.dtype) for array in arrays))
        with on_device_of(arrays[0]):
            run = self.graphs.get(key)
            if run is None:
                run = self.record(arrays) if 0 < len(self.graphs) <= MOST else None
                # What fails to be recorded twice is run from then on; once, it may have had to compile a kernel.
                self.graphs[key] = self.function if run is None and key in self.graphs else run
            return (run or self.function)(*arrays)

    def record(self, arrays: Arrays) -> Callable[..., Arrays] | None:
        """A function that copies its arguments to where the graph reads them and launches it; None without a graph."""
        device, inputs, before = device_of(arrays[0]), [array.copy() for array in arrays], random.get_state()
        graph: Any = None
        outputs: Arrays | None = None
        current = self.cupy.cuda.get_current_stream
        current().synchronize()
        if not self.pool.total_bytes():  # what ran before there were graphs is over
            self.cupy.get_default_memory_pool().free_all_blocks()
        self.short.clear()
        with random.recorded(device), self.stream, self.cupy.cuda.using_allocator(self.pool.malloc):
            try:
                self.stream.begin_capture()
                outputs = self.function(*inputs)
            except Exception:  # noqa: BLE001 - whatever it was, the function says so again when it is run
                pass
            finally:
                with contextlib.suppress(Exception):
                    graph = self.stream.end_capture()
                calls = random.get_state()["call"] - before["call"]
                random.set_state(before)
        if self.short:
            self.graphs.clear()
            self.pool.free_all_blocks()
        if self.short or outputs is None or graph is None:
            return None
        found: Arrays = outputs

        def launch(*arrays: Any) -> Arrays:
            for mine, array in zip(inputs, arrays, strict=True):
                mine[...] = array
            random.again(device, calls)
            graph.launch(current())
            return found

        return launch
