"""A computation recorded as a CUDA graph: one launch in place of hundreds, each of which takes longer than it runs."""

from __future__ import annotations

import contextlib
import importlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minigrad import random
from minigrad.device import device_of, memory, on_device_of
from minigrad.engine.primitive import bodies
from minigrad.engine.watch import NOTHING, around

Arrays = Sequence[Any]  # raw ones on the GPU; None may stand in place of an argument
LOCK = threading.Lock()  # one thread records at a time
MOST = 1000  # graphs: one of a step of training takes about a megabyte


def on_a_card(model: Any) -> bool:
    """Whether what a module computes may be recorded: its parameters are on a card, and nobody is told of its steps."""
    first = next(model.parameters(), None)
    return (first is not None and type(first.data).__module__ == "cupy" and around.get() == NOTHING and bodies.get()
            and not any(x._hooks for x in [*model.parameters(), *model.modules()]))


class Recorder:
    """Records functions as CUDA graphs, which share their memory: they run one after the other.

    Attributes:
        owners: objects that keep graphs of this memory, in a dictionary `graphs`; it is emptied when memory runs short.
    """

    def __init__(self) -> None:
        self.cupy = importlib.import_module("cupy")
        self.stream = self.cupy.cuda.Stream(non_blocking=True)  # a pool keeps the memory of each stream apart
        self.owners: Any = weakref.WeakSet()
        cuda, short = self.cupy.cuda, list[int]()

        def take(size: int) -> Any:
            try:
                return cuda.MemoryPointer(cuda.Memory(size), 0)
            except cuda.runtime.CUDARuntimeError:  # CuPy now gives back what is free, which graphs take for theirs
                short.append(size)
                raise

        self.pool, self.short = cuda.MemoryPool(take), short
        memory.POOLS.append(self.pool)

    def __del__(self) -> None:
        """Give back the memory."""
        memory.POOLS.remove(self.pool)

    @contextlib.contextmanager
    def host_unread(self) -> Iterator[None]:
        """A block in which this thread sends nothing from the host: a graph would read there again when it is launched.
        """
        cuda, pool, thread = self.cupy.cuda, self.cupy.get_default_pinned_memory_pool(), threading.get_ident()

        def take(size: int) -> Any:
            if threading.get_ident() == thread:
                raise RuntimeError("what is sent from the host cannot be recorded")
            return pool.malloc(size)

        cuda.set_pinned_memory_allocator(take)
        try:
            yield
        finally:
            cuda.set_pinned_memory_allocator(pool.malloc)

    def record(self, function: Callable[..., Arrays], arrays: Arrays) -> Callable[..., Arrays] | None:
        """A function that copies its arguments to where the graph reads them and launches it; None without a graph."""
        device, before = device_of(arrays[0]), random.get_state()
        inputs: Any = [None if array is None else array.copy() for array in arrays]
        graph: Any = None
        outputs: Arrays | None = None
        current = self.cupy.cuda.get_current_stream
        current().synchronize()
        if not self.pool.total_bytes():  # what ran before there were graphs is over
            self.cupy.get_default_memory_pool().free_all_blocks()
        self.short.clear()
        with (LOCK, random.recorded(device), self.stream, self.cupy.cuda.using_allocator(self.pool.malloc),
              self.host_unread()):
            try:
                self.stream.begin_capture()
                outputs = function(*inputs)
            except Exception:  # noqa: BLE001 - whatever it was, the function says so again when it is run
                pass
            finally:
                with contextlib.suppress(Exception):
                    graph = self.stream.end_capture()
                calls = random.get_state()["call"] - before["call"]
                if calls:
                    random.set_state(before)
        if self.short:
            for owner in self.owners:
                owner.graphs.clear()
            self.pool.free_all_blocks()
        if self.short or outputs is None or graph is None:
            return None
        found: Arrays = outputs

        def launch(*arrays: Any) -> Arrays:
            for mine, array in zip(inputs, arrays, strict=True):
                if array is not None:
                    mine[...] = array
            random.again(device, calls)
            graph.launch(current())
            return found

        return launch


class Recorded:
    """A function of CuPy's arrays that launches the same kernels for all arguments of the same shapes.

    The first call runs it, to compile the kernels. Later ones record it once for all arguments of the same shapes, and
    launch the graph, whose results the next call overwrites. So the function must not read or change anything on the
    host that differs between calls. Where it does what cannot be recorded (to wait for the GPU, to send it an array, a
    product of CuPy's), it is run each time.

    Args:
        function: of arrays, which returns a list of arrays. One that it makes keeps its memory as long as the graph;
            arrays that are there before, into which it writes, serve all graphs.
    """

    def __init__(self, function: Callable[..., Arrays]) -> None:
        self.function, self.recorder = function, Recorder()
        self.graphs: dict[Any, Callable[..., Arrays] | None] = {}
        self.recorder.owners.add(self)

    def __call__(self, *arrays: Any, fixed: tuple[Any, ...] = ()) -> Arrays:
        """The function of these arrays; `fixed` is what else it depends on, and another has another graph."""
        key = (*fixed, *((array.shape, array.dtype) for array in arrays))
        with on_device_of(arrays[0]):
            run = self.graphs.get(key)
            if run is None:
                run = self.recorder.record(self.function, arrays) if 0 < len(self.graphs) <= MOST else None
                # What fails to be recorded twice is run from then on; once, it may have had to compile a kernel.
                self.graphs[key] = self.function if run is None and key in self.graphs else run
            return (run or self.function)(*arrays)
