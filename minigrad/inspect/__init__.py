"""Tools that watch a computation: the profile, memory, anomalies, the tape as text, the graph as a picture.

All are built on the seam `minigrad.engine.observe`, work on any program, on every device, and cost nothing outside of their
blocks. ``import minigrad`` does not load them; ``from minigrad import inspect`` does.
"""

from minigrad.engine.interpreters import span
from minigrad.inspect.anomaly import AnomalyError, detect_anomaly
from minigrad.inspect.entry import Entry, Kept, Leaf
from minigrad.inspect.graph import Drawing, draw
from minigrad.inspect.hooks import Event, op_hook
from minigrad.inspect.lines import Line
from minigrad.inspect.memory import MemoryMeter, memory_meter
from minigrad.inspect.modules import ModuleCall
from minigrad.inspect.profile_tables import ModuleRow, OperationRow, Profile, SpanRow
from minigrad.inspect.profiler import profile
from minigrad.inspect.recorder import Tape, record_tape, tape
from minigrad.inspect.spans import Span

__all__ = [
    "AnomalyError", "Drawing", "Entry", "Event", "Kept", "Leaf", "Line", "MemoryMeter", "ModuleCall", "ModuleRow",
    "OperationRow", "Profile", "Span", "SpanRow", "Tape", "detect_anomaly", "draw", "memory_meter", "op_hook",
    "profile", "record_tape", "span", "tape",
]
