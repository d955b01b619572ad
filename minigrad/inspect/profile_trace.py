"""A profile as trace events, the format that chrome://tracing and Perfetto open.

Google, "Trace Event Format": complete events ("X") for stretches of time, in microseconds, nested by their times within
a thread; counters ("C"); metadata ("M") for the names of processes and threads.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from minigrad.inspect.spans import Form, Span
from minigrad.inspect.table import shape_text


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
