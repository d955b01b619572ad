"""Where the time goes and what is allocated: watches every operation, its gradient rules, and every module."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter_ns
from typing import Any

import numpy as np

from minigrad.device import device_of, synchronize
from minigrad.device.memory import pool_use
from minigrad.engine.interpreters import Operands, interpreting
from minigrad.engine.node import Array, Node, TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.inspect.memory import arrays_in, owner
from minigrad.inspect.modules import RECOMPUTED, ModuleCall, ModuleWatcher
from minigrad.inspect.profile_report import Form, Profile, Span


class _Frame:
    """A span that is under way, and what is known of it until it ends."""

    __slots__ = ("before", "entered", "given", "inside", "key", "recomputes", "span")

    def __init__(self, key: Any, span: Span, entered: int, given: list[Array], recomputes: bool) -> None:
        self.key, self.span, self.entered, self.given, self.recomputes = key, span, entered, given, recomputes
        self.inside = 0  # nanoseconds in spans that happen in it, and in watching them
        self.before: set[int] | None = None  # ids of the memory that went in, once somebody asks


class _Open(threading.local):
    """The frames of one thread, the innermost last."""

    def __init__(self) -> None:
        self.frames: list[_Frame] = []


class _Profiler(ModuleWatcher):
    """Writes into a `Profile` what runs, in however many threads."""

    def __init__(self, profile: Profile, model: Any, synchronized: bool) -> None:
        super().__init__(model)
        self._profile, self._synchronized, self._stopped = profile, synchronized, False
        self._open = _Open()
        self._recorded_in: weakref.WeakKeyDictionary[Node, ModuleCall | None] = weakref.WeakKeyDictionary()
        self._devices: set[str] = set()  # the GPUs that were seen
        self._live: dict[int, weakref.ref[Any]] = {}  # memory that operations made and that is still there, by id

    def stop(self) -> None:
        """Write nothing more: a thread that outlives the block goes on calling the methods."""
        self._stopped = True
        self._live.clear()  # and with them what they call

    # ------------------------------------------------------------------ a span begins and ends

    def _begin(self, key: Any, kind: str, name: str, entered: int, values: Any = (), recomputes: bool = False) -> None:
        if self._stopped:
            return
        frames = self._open.frames
        around = frames[-1] if frames else None
        span = Span(kind, name, threading.get_native_id(), None, None if around is None else around.span)
        if around is None:
            self._profile.threads.setdefault(span.thread, threading.current_thread().name)
        else:
            span.backward = around.span.backward and not around.recomputes
            span.recomputed = around.span.recomputed or around.recomputes
        if kind == "backward":
            span.backward, span.call = True, self._recorded_in.get(key)
        elif around is not None and around.span.kind == "backward" and not around.recomputes:
            span.call = around.span.call  # what a rule does belongs where the operation belongs whose rule it is
        else:
            span.call = self._current_call()
        given = list(arrays_in(values))
        for array in given:
            if type(array) is not np.ndarray:
                self._devices.add(device_of(array))
        self._wait()
        frames.append(_Frame(key, span, entered, given, recomputes))
        span.begin = perf_counter_ns()

    def _current_call(self) -> ModuleCall | None:
        call = self.calls.current
        while call is not None and call.kind == RECOMPUTED:
            call = call.outer
        return call

    def _wait(self) -> None:
        if self._synchronized:
            for device in tuple(self._devices):
                synchronize(device)

    def _end(self, key: Any) -> _Frame | None:
        """The frame that began with `key`; None if the block had ended by then."""
        self._wait()
        now, frames = perf_counter_ns(), self._open.frames
        if not any(frame.key is key for frame in frames):
            return None
        frame = frames.pop()
        while frame.key is not key:  # it has no end, because an interpreter raised as its module or span began
            frame = frames.pop()
        span = frame.span
        span.end, span.own = now, now - span.begin - frame.inside
        return frame

    def _close(self, frame: _Frame, made: Iterable[Array] = ()) -> None:
        frames, span = self._open.frames, frame.span
        if self._stopped:
            return
        span.inputs, span.outputs = tuple([_form(array) for array in frame.given]), tuple([_form(a) for a in made])
        self._profile.spans.append(span)
        for device in tuple(self._devices):
            self._profile.pools.setdefault(device, []).append((span.end, *pool_use(device)))
        now = perf_counter_ns()
        span.watching += now - span.end + span.begin - frame.entered
        if frames:
            frames[-1].inside += now - frame.entered

    # ------------------------------------------------------------------ memory

    def _count_new(self, values: Iterable[Array], frame: _Frame, saved: Any = ()) -> None:
        """Add to the span the bytes of the memory of `values` that did not go in, nor was `saved`."""
        for array in values:
            whole = owner(array)
            key = id(whole)
            if key in self._live or isinstance(whole, np.generic):  # a scalar is no array yet
                continue
            if frame.before is None:
                frame.before = {id(owner(given)) for given in (*frame.given, *arrays_in(saved))}
            if key not in frame.before:
                count = int(whole.nbytes)
                died = functools.partial(_died, self._live, self._profile.samples, key, count)
                self._live[key] = weakref.ref(whole, died)
                self._profile.samples.append((perf_counter_ns(), count))
                frame.span.bytes += count

    # ------------------------------------------------------------------ what it watches

    def operation(self, op: Primitive, operands: Operands, proceed: Callable[[Operands], Any]) -> Any:
        self._begin(operands, "operation", op.name, perf_counter_ns(), operands.args)
        output = None
        try:
            output = proceed(operands)
        finally:
            frame = self._end(operands)
            if frame is not None:
                self._operation_ends(op, output, frame)
        return output

    def _operation_ends(self, op: Primitive, output: TensorBase | None, frame: _Frame) -> None:
        if output is not None:
            made, node = [output._data], output._node
            if node is not None:
                self._recorded_in[node] = frame.span.call
                if op.recomputes:
                    self.calls.keep(node)
                made += arrays_in(node.saved)
            self._count_new(made, frame)
        self._close(frame, [] if output is None else [output._data])

    def rules(self, node: Node, g: Array | TensorBase, proceed: Callable[[Any], list[Any]]) -> list[Any]:
        entered = perf_counter_ns()
        gradients: list[Any] = []
        with self.calls.inside(node):
            self._begin(node, "backward", node.primitive.name, entered, (g,), node.primitive.recomputes)
            try:
                gradients = proceed(g)
            finally:
                frame = self._end(node)
                if frame is not None:
                    made = list(arrays_in(gradients))
                    self._count_new(made, frame, node.saved)
                    self._close(frame, made)
        return gradients

    def module_begins(self, module: Any) -> None:
        entered = perf_counter_ns()
        self._begin(module, "module", self.calls.begin(module).path, entered)

    def module_ends(self, module: Any) -> None:
        frame = self._end(module)
        self.calls.end(module)
        if frame is not None:
            self._close(frame)

    def span_begins(self, name: str) -> None:
        self._begin(name, "span", name, perf_counter_ns())

    def span_ends(self, name: str) -> None:
        frame = self._end(name)
        if frame is not None:
            self._close(frame)


def _form(array: Array) -> Form:
    return tuple(array.shape), array.dtype


def _died(live: dict[int, Any], samples: list[tuple[int, int]], key: int, count: int, _: Any) -> None:
    live.pop(key, None)
    samples.append((perf_counter_ns(), -count))


@contextlib.contextmanager
def profile(model: Any = None, synchronize: bool = True) -> Iterator[Profile]:
    """Measure time and bytes of every operation and module inside: ``with profile() as p: …``, then ``print(p)``.

    ``p.save("trace.json")`` writes what happened when, for chrome://tracing and ui.perfetto.dev. `span` gives a stretch
    of the program a name, under which it appears; an optimizer's ``step`` and a backward pass appear under theirs.

    Threads that run in a copy of the block's context (`contextvars.copy_context`) are watched, too; each has its own
    track. Operations under `no_grad` count. A composition is no operation: its steps are. Every span is kept, a few
    hundred bytes each: measure some steps of a training, after the first few, rather than all of it.

    Args:
        model: a module, from which the dotted names of modules are counted; by default from the outermost that is
            called, under the name of its class.
        synchronize: on a GPU, wait for it before and after each operation. False measures how long the host takes to
            hand the work over.

    Returns:
        A context manager that gives a `Profile`.
    """
    measured = Profile()
    measured.writer = profiler = _Profiler(measured, model, synchronize)
    try:
        with interpreting(profiler):
            yield measured
    finally:
        measured.stop()
        profiler.stop()
        measured.writer = None  # which refers to it: no cycle is left
