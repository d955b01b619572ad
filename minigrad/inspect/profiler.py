"""Where the time goes and what is allocated: watches every operation, its gradient rules, and every module."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from minigrad.device import device_of, synchronize
from minigrad.device.memory import pool_use
from minigrad.engine.node import Array, Node, TensorBase
from minigrad.inspect.memory import arrays_in, owner
from minigrad.inspect.modules import RECOMPUTED, ModuleCall, ModuleCalls
from minigrad.inspect.observer import Observer, observing
from minigrad.inspect.profile_tables import Profile
from minigrad.inspect.spans import Form, Span


class _Frame:
    """A span that is under way, and what is known of it until it ends."""

    __slots__ = ("before", "entered", "given", "inside", "key", "made", "recomputes", "span")

    def __init__(self, key: Any, span: Span, entered: int, given: list[Array], recomputes: bool) -> None:
        self.key, self.span, self.entered, self.given, self.recomputes = key, span, entered, given, recomputes
        self.inside = 0  # nanoseconds in spans that happen in it, and in watching them
        self.made: list[Form] = []  # the gradients that its rules gave
        self.before: set[int] | None = None  # ids of the memory that went in, once somebody asks


class _Open(threading.local):
    """The frames of one thread, the innermost last."""

    def __init__(self) -> None:
        self.frames: list[_Frame] = []


class _Profiler(Observer):
    """Writes into a `Profile` what it is told, from however many threads."""

    accumulates = True

    def __init__(self, profile: Profile, model: Any, synchronized: bool) -> None:
        self._profile, self._synchronized, self._stopped = profile, synchronized, False
        self._calls, self._open = ModuleCalls(model), _Open()
        self._recorded_in: weakref.WeakKeyDictionary[Node, ModuleCall | None] = weakref.WeakKeyDictionary()
        self._devices: set[str] = set()  # the GPUs that were seen
        self._live: dict[int, weakref.ref[Any]] = {}  # memory that operations made and that is still there, by id

    def stop(self) -> None:
        """Take nothing more down: a thread that goes on tells its observers to its end."""
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
        call = self._calls.current
        while call is not None and call.kind == RECOMPUTED:
            call = call.outer
        return call

    def _wait(self) -> None:
        if self._synchronized:
            for device in tuple(self._devices):
                synchronize(device)

    def _end(self, key: Any) -> _Frame | None:
        """The frame that began with `key`; None if that was not taken down."""
        self._wait()
        now, frames = perf_counter_ns(), self._open.frames
        if not any(frame.key is key for frame in frames):
            return None
        frame = frames.pop()
        while frame.key is not key:  # its end was not told, because another observer raised
            frame = frames.pop()
        span = frame.span
        span.end, span.own = now, now - span.begin - frame.inside
        return frame

    def _close(self, frame: _Frame) -> None:
        frames, span = self._open.frames, frame.span
        if self._stopped:
            return
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

    # ------------------------------------------------------------------ what an observer is told

    def operation_begins(self, operation: Any, args: Sequence[Any]) -> None:
        self._begin(args, "operation", operation.name, perf_counter_ns(), args)

    def operation_ends(self, operation: Any, args: Sequence[Any], output: TensorBase | None) -> None:
        frame = self._end(args)
        if frame is None:
            return
        span = frame.span
        span.inputs = tuple([_form(array) for array in frame.given])
        if output is not None:
            span.outputs = (_form(output._data),)
            made, node = [output._data], output._node
            if node is not None:
                self._recorded_in[node] = span.call
                if operation.recomputes:
                    self._calls.keep(node)
                made += arrays_in(node.saved)
            self._count_new(made, frame)
        self._close(frame)

    def rules_begin(self, node: Node, gradient: Array | TensorBase) -> None:
        entered = perf_counter_ns()
        self._calls.rules_begin(node)
        self._begin(node, "backward", node.primitive.name, entered, (gradient,), node.primitive.recomputes)

    def gradient_sent(self, node: Node, name: str, target: Node | TensorBase, gradient: Array | TensorBase) -> None:
        frames = self._open.frames
        if frames and frames[-1].key is node:
            entered, raw = perf_counter_ns(), gradient._data if isinstance(gradient, TensorBase) else gradient
            frames[-1].made.append(_form(raw))
            self._count_new((raw,), frames[-1], node.saved)
            watching = perf_counter_ns() - entered
            frames[-1].inside += watching
            frames[-1].span.watching += watching

    def rules_end(self, node: Node) -> None:
        frame = self._end(node)
        self._calls.rules_end(node)
        if frame is not None:
            frame.span.inputs = tuple([_form(array) for array in frame.given])
            frame.span.outputs = tuple(frame.made)
            self._close(frame)

    def module_begins(self, module: Any) -> None:
        entered = perf_counter_ns()
        self._begin(module, "module", self._calls.begin(module).path, entered)

    def module_ends(self, module: Any) -> None:
        frame = self._end(module)
        self._calls.end(module)
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
        with observing(profiler):
            yield measured
    finally:
        measured.stop()
        profiler.stop()
        measured.writer = None  # which refers to it: no cycle is left
