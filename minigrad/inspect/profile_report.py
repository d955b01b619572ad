"""What a profile says: the stretches of time that it measured, as rows, as tables and as a trace.

The trace has the format that chrome://tracing and Perfetto open. Google, "Trace Event Format": complete events ("X")
for stretches of time, in microseconds, nested by their times within a thread; counters ("C"); metadata ("M") for the
names of processes and threads.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from minigrad.engine.interpreters import Interpreter, not_interpreting
from minigrad.inspect.modules import RECOMPUTED, ModuleCall
from minigrad.inspect.table import milliseconds, percent, shape_text, size, table

Form = tuple[tuple[int, ...], Any]  # the shape and dtype of an array


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
        recomputed: whether it is a part of a checkpoint that is computed again.
        begin, end: nanoseconds, of the clock `time.perf_counter_ns`.
        own: nanoseconds of it outside of the spans that happen in it, and without the watching of those.
        watching: nanoseconds that watching it took, which are no part of it.
        bytes: of the memory that it made and that stayed: of an operation its output and what it saved for the
            backward, of gradient rules the gradients. What is a view, or was there before, has none.
        inputs, outputs: shape and dtype of the arrays that went in and came out.
    """

    kind: str
    name: str
    thread: int
    call: ModuleCall | None
    parent: Span | None
    backward: bool = False
    recomputed: bool = False
    begin: int = 0
    end: int = 0
    own: int = 0
    watching: int = 0
    bytes: int = 0
    inputs: tuple[Form, ...] = ()
    outputs: tuple[Form, ...] = ()

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
class OperationRow:
    """One operation, forward and backward: seconds of its own, calls, and bytes that it made and that stayed."""

    name: str
    forward: float = 0.0
    forward_calls: int = 0
    forward_bytes: int = 0
    backward: float = 0.0
    backward_calls: int = 0
    backward_bytes: int = 0

    @property
    def total(self) -> float:
        """Seconds, both ways."""
        return self.forward + self.backward


@dataclass
class ModuleRow:
    """One module by its dotted path, with all that is in it.

    Attributes:
        path: its dotted path.
        calls: how often it was called, checkpoints that were computed again included.
        forward: seconds of its forward, with the modules that it calls.
        own: those of them that are outside of the modules that it calls.
        backward: seconds of the gradient rules of the operations in it.
        bytes: what those operations and rules made.
    """

    path: str
    calls: int = 0
    forward: float = 0.0
    own: float = 0.0
    backward: float = 0.0
    bytes: int = 0

    @property
    def total(self) -> float:
        """Seconds, both ways."""
        return self.forward + self.backward


@dataclass
class SpanRow:
    """What was named by `span`: calls, seconds in all, those outside of the spans within, and bytes made in it."""

    name: str
    calls: int = 0
    total: float = 0.0
    own: float = 0.0
    bytes: int = 0


class Profile:
    """What `profile` measured. ``print`` shows it as tables; `save` writes it as a trace.

    Attributes:
        spans: every `Span` that has ended, in the order of their ends.
        threads: the names of the threads that were seen, by the system's number.
        writer: what writes into it, within the block.
        samples: (nanoseconds, bytes), of the memory that operations made and, negative, of that which was freed.
        pools: of each GPU that was seen (nanoseconds, bytes), after each operation: what arrays used of the memory that
            CuPy's pool held, and what it held; see `minigrad.device.memory.MemoryUse`.
    """

    def __init__(self) -> None:
        self.writer: Interpreter | None = None
        self.spans: list[Span] = []
        self.threads: dict[int, str] = {}
        self.samples: list[tuple[int, int]] = []
        self.pools: dict[str, list[tuple[int, int, int]]] = {}
        self._began = perf_counter_ns()
        self._ended: int | None = None
        self._paused = 0

    def stop(self) -> None:
        """The block ends; `profile` calls this."""
        self._ended = perf_counter_ns()

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """``with profile.pause():`` inside its block: do not measure what the thread does here, nor count the time."""
        began = perf_counter_ns()
        try:
            with contextlib.nullcontext() if self.writer is None else not_interpreting(self.writer):
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
    def recomputed(self) -> float:
        """Those of them that went into checkpoints that were computed again."""
        return sum(span.own for span in self.spans if span.recomputed and span.kind in ("operation", "backward")) / 1e9

    @property
    def watching(self) -> float:
        """Seconds that the profile itself took, which are in no row."""
        return sum(span.watching for span in self.spans) / 1e9

    @property
    def bytes(self) -> int:
        """What all operations and gradient rules made."""
        return sum(span.bytes for span in self.spans)

    @property
    def peak_bytes(self) -> int:
        """The most of it that was there at a time.

        What existed before the block, what an operation needs only while it runs, and what is no operation's result
        (an optimizer's state, sums of gradients) is not counted: it is less than the process holds.
        """
        return max(itertools.accumulate((count for _, count in self._timeline()), initial=0))

    def _timeline(self) -> list[tuple[int, int]]:
        return sorted(self.samples, key=lambda sample: sample[0])  # several threads write

    @property
    def operations(self) -> dict[str, OperationRow]:
        """By name, the most expensive first."""
        rows: dict[str, OperationRow] = {}
        for span in list(self.spans):
            if span.kind == "operation":
                row = rows.setdefault(span.name, OperationRow(span.name))
                row.forward += span.own / 1e9
                row.forward_calls += 1
                row.forward_bytes += span.bytes
            elif span.kind == "backward":
                row = rows.setdefault(span.name, OperationRow(span.name))
                row.backward += span.own / 1e9
                row.backward_calls += 1
                row.backward_bytes += span.bytes
        return _by_total(rows)

    @property
    def modules(self) -> dict[str, ModuleRow]:
        """By path, the most expensive first."""
        rows: dict[str, ModuleRow] = {}
        for span in list(self.spans):
            for path in span.paths:
                row = rows.setdefault(path, ModuleRow(path))
                row.bytes += span.bytes
                if span.backward:
                    row.backward += span.own / 1e9
                else:
                    row.forward += span.own / 1e9
            if span.call is not None and not span.backward:
                rows[span.call.path].own += span.own / 1e9
            if span.kind == "module":
                rows[span.name].calls += 1
        return _by_total(rows)

    @property
    def named(self) -> dict[str, SpanRow]:
        """What was named by `span`, the most expensive first."""
        rows: dict[str, SpanRow] = {}
        for span in list(self.spans):
            for name in span.named:
                row = rows.setdefault(name, SpanRow(name))
                row.total += span.own / 1e9
                row.bytes += span.bytes
            if span.kind == "span":
                rows[span.name].calls += 1
                rows[span.name].own += span.own / 1e9
        return _by_total(rows)

    # ------------------------------------------------------------------ tables

    def text(self, count: int | None = 20) -> str:
        """The tables, with the `count` most expensive rows of each; None for all."""
        return "\n\n".join(part for part in (self._summary(), self._operations(count), self._modules(count),
                                             self._named(count)) if part)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Profile of {len(self.spans)} spans in {self.elapsed:.3g} s; print() shows it>"

    def _summary(self) -> str:
        forward = sum(row.forward for row in self.operations.values())
        again = f"; {milliseconds(self.recomputed)} for checkpoints, again" if self.recomputed else ""
        threads = f" of {len(self.threads)} threads" if len(self.threads) > 1 else ""
        resident = _peak_resident()
        process = "" if resident is None else f"; the whole process held {size(resident)} at its peak"
        pools = "".join(f"\nthe pool of {device} held {size(max(held for _, _, held in samples))}, of which at most "
                        f"{size(max(used for _, used, _ in samples))} was in use"
                        for device, samples in sorted(self.pools.items()))
        return (f"{milliseconds(self.elapsed)} ms in the block{threads}, of them {milliseconds(self.total)} in "
                f"operations ({milliseconds(forward)} forward, {milliseconds(self.total - forward)} backward{again}) "
                f"and {milliseconds(self.watching)} in watching\n"
                f"{size(self.bytes)} made by operations, at most {size(self.peak_bytes)} of it at a time{process}"
                f"{pools}")

    def _operations(self, count: int | None) -> str:
        rows, total = list(self.operations.values()), self.total
        cells = [_operation_cells(row, total) for row in rows[:count]]
        if count is not None and len(rows) > count:
            rest = OperationRow(f"… {len(rows) - count} more")
            for row in rows[count:]:
                for name in vars(row).keys() - {"name"}:
                    setattr(rest, name, getattr(rest, name) + getattr(row, name))
            cells.append(_operation_cells(rest, total))
        header = ("operation", "forwards", "ms", "bytes", "backwards", "ms", "bytes", "ms in all", "share")
        return table(header, cells, right=range(1, 9))

    def _modules(self, count: int | None) -> str:
        rows = list(self.modules.values())
        cells = [(row.path, str(row.calls), milliseconds(row.forward), milliseconds(row.own),
                  milliseconds(row.backward), milliseconds(row.total), size(row.bytes)) for row in rows[:count]]
        header = ("module", "calls", "forward ms", "of it own", "backward ms", "ms in all", "bytes")
        return table(header, [*cells, *_more(len(rows), count)], right=range(1, 7)) if rows else ""

    def _named(self, count: int | None) -> str:
        rows = list(self.named.values())
        cells = [(row.name, str(row.calls), milliseconds(row.total), milliseconds(row.own),
                  percent(row.total, self.elapsed), size(row.bytes)) for row in rows[:count]]
        header = ("span", "calls", "ms", "of it own", "of the block", "bytes")
        return table(header, [*cells, *_more(len(rows), count)], right=range(1, 6)) if rows else ""

    # ------------------------------------------------------------------ the trace

    def to_chrome_trace(self) -> dict[str, Any]:
        """The trace as a dictionary: ``{"traceEvents": […], …}``, times in microseconds from the block's beginning.

        Complete events for operations, their gradient rules, modules and named spans, nested within a track for each
        thread, with shapes, dtypes, bytes and modules as their arguments; a counter of the bytes that operations made
        and that are still there; and one for each GPU that was seen, of the memory that its pool held: that in use and,
        on top of it, that kept for later.
        """
        return chrome_trace(list(self.spans), self._timeline(), self.threads, self._began, self.pools)

    def save(self, path: str | Path) -> None:
        """Write the trace as JSON, which chrome://tracing and https://ui.perfetto.dev open."""
        Path(path).write_text(json.dumps(self.to_chrome_trace()), encoding="utf-8")


def _by_total(rows: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(rows.items(), key=lambda item: -item[1].total))


def _operation_cells(row: OperationRow, total: float) -> tuple[str, ...]:
    return (row.name, str(row.forward_calls), milliseconds(row.forward), size(row.forward_bytes),
            str(row.backward_calls), milliseconds(row.backward), size(row.backward_bytes), milliseconds(row.total),
            percent(row.total, total))


def _more(rows: int, count: int | None) -> list[str]:
    return [] if count is None or rows <= count else [f"… {rows - count} more"]


def _peak_resident() -> int | None:
    """The most bytes of memory that the process has held since it began; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else int(peak) * 1024


# --------------------------------------------------------------------------- the trace


def chrome_trace(spans: Iterable[Span], samples: Sequence[tuple[int, int]], threads: Mapping[int, str], began: int,
                 pools: Mapping[str, Sequence[tuple[int, int, int]]]) -> dict[str, Any]:
    """The trace as what JSON can hold.

    Args:
        spans: what happened.
        samples: (nanoseconds, bytes that were made or, if negative, freed) in the order of time.
        threads: the names of the threads, by number.
        began: the nanoseconds that are its 0.
        pools: (nanoseconds, bytes in use, bytes held) of the memory pool of each GPU.
    """
    process = os.getpid()
    events = [_metadata("process_name", process, 0, name=os.path.basename(sys.argv[0]) or "python")]
    first = threading.main_thread().native_id
    for place, thread in enumerate(sorted(threads, key=lambda thread: thread != first)):
        events.append(_metadata("thread_name", process, thread, name=threads[thread]))
        events.append(_metadata("thread_sort_index", process, thread, sort_index=place))
    for span in sorted(spans, key=lambda span: (span.begin, -span.end)):
        events.append({"name": _name(span), "cat": span.kind, "ph": "X", "ts": (span.begin - began) / 1000,
                       "dur": (span.end - span.begin) / 1000, "pid": process, "tid": span.thread, "args": _args(span)})
    live = itertools.accumulate(count for _, count in samples)
    for (time, _), bytes_ in zip(samples, live, strict=True):
        events.append({"name": "results of operations", "ph": "C", "ts": (time - began) / 1000, "pid": process,
                       "args": {"bytes": bytes_}})
    for device, uses in sorted(pools.items()):
        for time, used, held in sorted(uses):  # a viewer stacks the two: together they are what is held
            events.append({"name": f"pool of {device}", "ph": "C", "ts": (time - began) / 1000, "pid": process,
                           "args": {"in use": used, "kept": held - used}})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _metadata(kind: str, process: int, thread: int, **args: Any) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": args}


def _name(span: Span) -> str:
    if span.kind == "module" and span.call is not None:
        return span.call.name  # it stands below the modules around it
    return f"{span.name} (backward)" if span.kind == "backward" else span.name


def _args(span: Span) -> dict[str, Any]:
    args: dict[str, Any] = {"own us": span.own / 1000}
    if span.call is not None:
        args["module"] = span.call.path
        if span.kind == "module":
            args["class"] = span.call.kind
    if span.kind in ("operation", "backward"):
        args |= {"inputs": _texts(span.inputs), "outputs": _texts(span.outputs), "bytes": span.bytes}
    if span.recomputed:
        args["recomputed"] = True
    return args


def _texts(forms: Iterable[Form]) -> list[str]:
    return [f"{dtype} {shape_text(shape)}" for shape, dtype in forms]
