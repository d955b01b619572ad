"""Where the time goes and what is allocated: `profile` watches every operation, its gradient rules, and every module.

`Profile.to_chrome_trace` has the format that chrome://tracing and Perfetto open: Google, "Trace Event Format", complete
events ("X"), in microseconds, nested by their times within a thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from minigrad.device import device_of, synchronize
from minigrad.engine.interpreters import Interpreter, Operands, interpreting, not_interpreting
from minigrad.engine.node import Array, Node, TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.inspect.memory import arrays_in, owner
from minigrad.inspect.modules import RECOMPUTED, ModuleCall, ModuleWatcher
from minigrad.inspect.table import milliseconds, percent, size, table

SHOWN = 20  # rows of a table


@dataclass(slots=True, eq=False, repr=False)
class Span:
    """One stretch of time in one thread: an operation, its gradient rules, the call of a module, or what was named.

    Attributes:
        kind: "operation", "backward" (the gradient rules of one), "module", or "span" (see `span`).
        name: of the operation; the dotted path of the module; what was given to `span`.
        thread: the number that the system gave the thread.
        call: the call of a module that it belongs to, of a module its own; None outside of all.
        parent: the span that it happens in, in the same thread, or None.
        backward: whether it is a part of a backward pass: gradient rules, and what runs inside of them.
        begin, end: nanoseconds, of the clock `time.perf_counter_ns`.
        own: nanoseconds of it outside of the spans that happen in it, and without the watching of those.
        watching: nanoseconds that watching it took, which are no part of it.
        bytes: of the memory that it made and that stayed: of an operation its output and what it saved for the
            backward, of gradient rules the gradients. What is a view, or was there before, has none.
    """

    kind: str
    name: str
    thread: int
    call: ModuleCall | None
    parent: Span | None
    backward: bool = False
    begin: int = 0
    end: int = 0
    own: int = 0
    watching: int = 0
    bytes: int = 0

    def __repr__(self) -> str:
        return f"<Span {self.kind} {self.name}, {(self.end - self.begin) / 1e6:.3g} ms>"

    @property
    def paths(self) -> set[str]:
        """Those of the modules around it, and its own if it is the call of one."""
        return set() if self.call is None else {call.path for call in self.call.chain} - {RECOMPUTED}

    @property
    def named(self) -> set[str]:
        """The names that were given to the stretches of the program that it lies in, its own among them."""
        names: set[str] = set()
        span: Span | None = self
        while span is not None:
            if span.kind == "span":
                names.add(span.name)
            span = span.parent
        return names


@dataclass
class Row:
    """What all spans of one name took: of an operation, of a module with all that is in it, or of a name.

    Attributes:
        name: of the operation; the dotted path of the module; what was given to `span`.
        calls, forward, forward_bytes: how often it ran, seconds, and bytes made.
        backward_calls, backward, backward_bytes: the same of the gradient rules; of a name they count as its own.
        own: seconds of the forward outside of what else has a row: of the modules that a module calls, say.
    """

    name: str
    calls: int = 0
    forward: float = 0.0
    forward_bytes: int = 0
    backward_calls: int = 0
    backward: float = 0.0
    backward_bytes: int = 0
    own: float = 0.0

    @property
    def total(self) -> float:
        """Seconds, both ways."""
        return self.forward + self.backward

    @property
    def bytes(self) -> int:
        """Bytes made, both ways."""
        return self.forward_bytes + self.backward_bytes


class Profile:
    """What `profile` measured. ``print`` shows it as tables; `save` writes it as a trace.

    Attributes:
        spans: every `Span` that has ended, in the order of their ends.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._writer: Interpreter | None = None  # what writes into it, within the block
        self._began = perf_counter_ns()
        self._ended: int | None = None
        self._paused = 0

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """``with profile.pause():`` inside its block: do not measure what the thread does here, nor count the time."""
        began = perf_counter_ns()
        try:
            with contextlib.nullcontext() if self._writer is None else not_interpreting(self._writer):
                yield
        finally:
            self._paused += perf_counter_ns() - began

    # ------------------------------------------------------------------ numbers

    @property
    def elapsed(self) -> float:
        """Seconds from the beginning of the block to its end, or to now, without pauses."""
        return ((perf_counter_ns() if self._ended is None else self._ended) - self._began - self._paused) / 1e9

    @property
    def total(self) -> float:
        """Seconds that all operations took, in all threads together."""
        return sum(row.total for row in self.operations.values())

    @property
    def watching(self) -> float:
        """Seconds that the profile itself took, which are in no row."""
        return sum(span.watching for span in self.spans) / 1e9

    @property
    def bytes(self) -> int:
        """What all operations and gradient rules made."""
        return sum(span.bytes for span in self.spans)

    @property
    def operations(self) -> dict[str, Row]:
        """By name, the most expensive first."""
        return self._rows("operation", lambda span: {span.name} if span.kind in ("operation", "backward") else (),
                          lambda span: span.kind == "backward")

    @property
    def modules(self) -> dict[str, Row]:
        """By path, the most expensive first."""
        return self._rows("module", lambda span: span.paths, lambda span: span.backward)

    @property
    def named(self) -> dict[str, Row]:
        """What was named by `span`, the most expensive first."""
        return self._rows("span", lambda span: span.named, lambda span: False)

    def _rows(self, kind: str, names: Callable[[Span], Iterable[str]],
              is_backward: Callable[[Span], bool]) -> dict[str, Row]:
        """The spans summed by each of their names; spans of this `kind` count as calls."""
        rows: dict[str, Row] = {}
        for span in list(self.spans):
            innermost = None if span.call is None else span.call.path
            own = innermost if kind == "module" else span.name if span.kind == kind else None
            for name in names(span):
                row = rows.setdefault(name, Row(name))
                if is_backward(span):
                    row.backward += span.own / 1e9
                    row.backward_bytes += span.bytes
                    row.backward_calls += span.kind == "backward"
                    continue
                row.forward += span.own / 1e9
                row.forward_bytes += span.bytes
                row.calls += span.kind == kind and span.name == name
                if name == own:
                    row.own += span.own / 1e9
        return dict(sorted(rows.items(), key=lambda item: -item[1].total))

    # ------------------------------------------------------------------ tables

    def __str__(self) -> str:
        whole = self.total
        operations = _table("operation forwards ms bytes backwards ms bytes ms share", [
            (row.name, row.calls, milliseconds(row.forward), size(row.forward_bytes), row.backward_calls,
             milliseconds(row.backward), size(row.backward_bytes), milliseconds(row.total), percent(row.total, whole))
            for row in self.operations.values()])
        modules = _table("module calls forward own backward ms bytes", [
            (row.name, row.calls, milliseconds(row.forward), milliseconds(row.own), milliseconds(row.backward),
             milliseconds(row.total), size(row.bytes)) for row in self.modules.values()])
        named = _table("span calls ms own share bytes", [
            (row.name, row.calls, milliseconds(row.total), milliseconds(row.own), percent(row.total, self.elapsed),
             size(row.bytes)) for row in self.named.values()])
        return "\n\n".join(part for part in (self._summary(), operations, modules, named) if part)

    def __repr__(self) -> str:
        return f"<Profile of {len(self.spans)} spans in {self.elapsed:.3g} s; print() shows it>"

    def _summary(self) -> str:
        forward = sum(row.forward for row in self.operations.values())
        threads = len({span.thread for span in self.spans})
        return (f"{milliseconds(self.elapsed)} ms in the block{f' of {threads} threads' if threads > 1 else ''}, of "
                f"them {milliseconds(self.total)} in operations ({milliseconds(forward)} forward, "
                f"{milliseconds(self.total - forward)} backward) and {milliseconds(self.watching)} in watching\n"
                f"{size(self.bytes)} made by operations")

    # ------------------------------------------------------------------ the trace

    def to_chrome_trace(self) -> dict[str, Any]:
        """The trace as a dictionary: a complete event for each span, nested within a track for each thread."""
        events = [{"name": f"{span.name} (backward)" if span.kind == "backward" else span.name, "cat": span.kind,
                   "ph": "X", "ts": (span.begin - self._began) / 1000, "dur": (span.end - span.begin) / 1000,
                   "pid": os.getpid(), "tid": span.thread,
                   "args": {"own us": span.own / 1000, "bytes": span.bytes,
                            "module": "" if span.call is None else span.call.path}}
                  for span in sorted(self.spans, key=lambda span: (span.begin, -span.end))]
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def save(self, path: str | Path) -> None:
        """Write the trace as JSON, which chrome://tracing and https://ui.perfetto.dev open."""
        Path(path).write_text(json.dumps(self.to_chrome_trace()), encoding="utf-8")


def _table(header: str, rows: Sequence[tuple[Any, ...]]) -> str:
    """The first `SHOWN` rows under the words of `header`; "" without rows."""
    names = header.split()
    more = [f"… {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
    cells = [[str(cell) for cell in row] for row in rows[:SHOWN]]
    return table(names, [*cells, *more], right=range(1, len(names))) if rows else ""


# --------------------------------------------------------------------------- what watches


class _Frame:
    """A span that is under way, and what is known of it until it ends."""

    __slots__ = ("entered", "given", "inside", "key", "recomputes", "span")

    def __init__(self, key: Any, span: Span, entered: int, given: list[Array], recomputes: bool) -> None:
        self.key, self.span, self.entered, self.given, self.recomputes = key, span, entered, given, recomputes
        self.inside = 0  # nanoseconds in spans that happen in it, and in watching them


class _Open(threading.local):
    """The frames of one thread, the innermost last."""

    def __init__(self) -> None:
        self.frames: list[_Frame] = []


class _Profiler(ModuleWatcher):
    """Writes into a `Profile` what runs, in however many threads."""

    def __init__(self, profile: Profile, model: Any) -> None:
        super().__init__(model)
        self._profile, self._stopped = profile, False
        self._open = _Open()
        self._recorded_in: weakref.WeakKeyDictionary[Node, ModuleCall | None] = weakref.WeakKeyDictionary()
        self._devices: set[str] = set()  # the GPUs that were seen
        self._made: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # memory counted, by id

    def stop(self) -> None:
        """Write nothing more: a thread that outlives the block goes on calling the methods."""
        self._stopped = True

    # ------------------------------------------------------------------ a span begins and ends

    def _begin(self, key: Any, kind: str, name: str, entered: int, values: Any = (), recomputes: bool = False) -> None:
        if self._stopped:
            return
        frames = self._open.frames
        around = frames[-1] if frames else None
        span = Span(kind, name, threading.get_native_id(), None, None if around is None else around.span)
        if around is not None:
            span.backward = around.span.backward and not around.recomputes
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

    def _close(self, frame: _Frame) -> None:
        frames, span = self._open.frames, frame.span
        if self._stopped:
            return
        self._profile.spans.append(span)
        now = perf_counter_ns()
        span.watching += now - span.end + span.begin - frame.entered
        if frames:
            frames[-1].inside += now - frame.entered

    def _count_new(self, values: Iterable[Array], frame: _Frame, saved: Any = ()) -> None:
        """Add to the span the bytes of the memory of `values` that did not go in, nor was `saved`."""
        before = {id(owner(given)) for given in (*frame.given, *arrays_in(saved))}
        for array in values:
            whole = owner(array)
            if isinstance(whole, np.generic) or id(whole) in self._made or id(whole) in before:
                continue  # a scalar is no array yet
            self._made[id(whole)] = whole
            frame.span.bytes += int(whole.nbytes)

    # ------------------------------------------------------------------ what it watches

    def operation(self, op: Primitive, operands: Operands, proceed: Callable[[Operands], Any]) -> Any:
        self._begin(operands, "operation", op.name, perf_counter_ns(), operands.args)
        output = None
        try:
            output = proceed(operands)
        finally:
            frame = self._end(operands)
            if frame is not None:
                if output is not None:
                    self._count_output(op, output, frame)
                self._close(frame)
        return output

    def _count_output(self, op: Primitive, output: TensorBase, frame: _Frame) -> None:
        made, node = [output._data], output._node
        if node is not None:
            self._recorded_in[node] = frame.span.call
            if op.recomputes:
                self.calls.keep(node)
            made += arrays_in(node.saved)
        self._count_new(made, frame)

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
                    self._count_new(arrays_in(gradients), frame, node.saved)
                    self._close(frame)
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


@contextlib.contextmanager
def profile(model: Any = None) -> Iterator[Profile]:
    """Measure time and bytes of every operation and module inside: ``with profile() as p: …``, then ``print(p)``.

    ``p.save("trace.json")`` writes what happened when, for chrome://tracing and ui.perfetto.dev. `span` gives a stretch
    of the program a name, under which it appears; an optimizer's ``step`` and a backward pass appear under theirs.

    Threads that run in a copy of the block's context (`contextvars.copy_context`) are watched, too; each has its own
    track. Operations under `no_grad` count. A composition is no operation: its steps are. Every span is kept, a few
    hundred bytes each: measure some steps of a training, after the first few, rather than all of it. A GPU is waited
    for before and after each operation.

    Args:
        model: a module, from which the dotted names of modules are counted; by default from the outermost module that
            is called, under the name of its class.

    Returns:
        A context manager that gives a `Profile`.
    """
    measured = Profile()
    measured._writer = profiler = _Profiler(measured, model)
    try:
        with interpreting(profiler):
            yield measured
    finally:
        measured._ended = perf_counter_ns()
        profiler.stop()
        measured._writer = None  # which refers to it: no cycle is left
