"""Where the time goes: `profile` measures every operation, its gradient rules, every module, and what has a name.

`Profile.save` writes the format that chrome://tracing and Perfetto open: Google, "Trace Event Format", complete
events ("X"), in microseconds, nested by their times within a thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from minigrad.device import device_of, synchronize
from minigrad.engine.watch import unwatched, watch
from minigrad.inspect.frames import Frame, FrameWatcher, arrays_in
from minigrad.inspect.table import table

SHOWN = 20  # rows of a table


@dataclass
class Row:
    """What all frames of one name took, in seconds, with all that ran in them.

    Attributes:
        calls: how often it ran; gradient rules do not count.
        forward, backward: outside of backward passes, and within.
        own: what is in no other row of the table.
    """

    calls: int = 0
    forward: float = 0.0
    backward: float = 0.0
    own: float = 0.0

    @property
    def total(self) -> float:
        """Both ways."""
        return self.forward + self.backward


class Profile(FrameWatcher):
    """What `profile` measured. ``print`` shows it as tables; `save` writes it as a trace.

    Attributes:
        spans: a `Frame` for everything that has ended, in the order of the ends, the number of its thread as its note.
    """

    def __init__(self, model: Any = None) -> None:
        super().__init__(model)
        self.spans: list[Frame] = []
        self._devices: set[str] = set()  # that were seen
        self._began, self._paused = perf_counter_ns(), 0
        self._ended = 0

    def before(self, what: Any, given: Any) -> None:
        """A frame begins; what watching takes is in none."""
        entered = perf_counter_ns()
        frame: Any = self.enter(what)
        frame.note = threading.get_native_id()
        self._devices.update(map(device_of, arrays_in(given)))
        self._wait()
        frame.begin = perf_counter_ns()
        frame.outer.own -= frame.begin - entered

    def after(self, what: Any, given: Any, made: Any) -> None:
        """It has ended."""
        self._wait()
        now = perf_counter_ns()
        frame: Any = self.leave(what, made)[0]
        frame.end, frame.own = now, frame.own + now - frame.begin
        self.spans.append(frame)
        frame.outer.own -= perf_counter_ns() - frame.begin

    def _wait(self) -> None:
        for device in tuple(self._devices):
            synchronize(device)

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """``with profile.pause():`` inside its block: do not measure what the thread does here, nor count the time."""
        began = perf_counter_ns()
        try:
            with unwatched(self):
                yield
        finally:
            self._paused += perf_counter_ns() - began

    @property
    def elapsed(self) -> float:
        """Seconds from the beginning of the block to its end, or to now, without pauses."""
        return ((self._ended or perf_counter_ns()) - self._began - self._paused) / 1e9

    def rows(self, kind: str) -> dict[str, Row]:
        """What all of a `kind` took, "operation", "module" or "span", by name, the longest first."""
        rows: dict[str, Row] = {}
        for frame in list(self.spans):
            names, seconds = [one.name for one in frame.around(kind)], frame.own / 1e9
            for name in set(names):
                row = rows.setdefault(name, Row())
                row.calls += frame.kind == kind and not frame.rules and frame.name == name
                row.own += seconds * (name == names[0])
                row.forward += seconds * (not frame.backward)
                row.backward += seconds * frame.backward
        return dict(sorted(rows.items(), key=lambda item: -item[1].total))

    def __str__(self) -> str:
        """A table for each kind, with its first `SHOWN` rows."""
        whole, inside = self.elapsed, sum(row.own for row in self.rows("operation").values())
        text = [f"{1000 * whole:.3f} ms in the block, of them {1000 * inside:.3f} in operations"]
        for kind in ("operation", "module", "span"):
            cells = [(name, str(row.calls), *[f"{1000 * seconds:.3f}" for seconds in (
                row.forward, row.backward, row.total, row.own)], f"{100 * row.total / whole:.1f}%")
                for name, row in list(self.rows(kind).items())[:SHOWN]]
            text += [table((kind, "calls", "forward ms", "backward ms", "ms", "own ms", "share"), cells, range(1, 7))
                     ] if cells else []
        return "\n\n".join(text)

    def save(self, path: str | Path) -> None:
        """Write the trace as JSON, which chrome://tracing and https://ui.perfetto.dev open: a track for each thread."""
        events = [{"name": f"{frame.name} (backward)" if frame.rules else frame.name, "cat": frame.kind,
                   "ph": "X", "ts": (frame.begin - self._began) / 1000, "dur": (frame.end - frame.begin) / 1000,
                   "pid": os.getpid(), "tid": frame.note, "args": {"module": frame.module}} for frame in self.spans]
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


@contextlib.contextmanager
def profile(model: Any = None) -> Iterator[Profile]:
    """Measure the time of every operation and module inside: ``with profile() as p: …``, then ``print(p)``.

    ``p.save("trace.json")`` writes what happened when, for chrome://tracing and ui.perfetto.dev. `span` gives a stretch
    of the program a name, under which it appears; an optimizer's ``step`` and a backward pass appear under theirs.

    Threads that run in a copy of the block's context (`contextvars.copy_context`) are watched, too; each has its own
    track. Operations under `no_grad` count. A composition is no operation: its steps are. Every frame is kept, a few
    hundred bytes each: measure some steps of a training, after the first few, rather than all of it. A GPU is waited
    for before and after each operation.

    Args:
        model: a module, from which the dotted names of modules are counted; by default from the outermost module that
            is called, under the name of its class.

    Returns:
        A context manager that gives a `Profile`.
    """
    measured = Profile(model)
    try:
        with watch(measured):
            yield measured
    finally:
        measured._ended = perf_counter_ns()
