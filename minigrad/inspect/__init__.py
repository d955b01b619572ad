"""Tools that watch a computation: profile, memory, anomalies, the tape as text, the graph as a picture, a program.

All are watchers (`minigrad.engine.watch`): they work on any program, on every device, and cost nothing outside of
their blocks. ``import minigrad`` does not load them; ``from minigrad import inspect`` does.
"""

from minigrad.engine.watch import Watcher, span, watch
from minigrad.inspect.anomaly import AnomalyError, detect_anomaly
from minigrad.inspect.graph import Drawing, draw
from minigrad.inspect.memory import MemoryMeter, memory_meter
from minigrad.inspect.profiler import Profile, profile
from minigrad.inspect.program import program
from minigrad.inspect.tape import Tape, record_tape

__all__ = ["AnomalyError", "Drawing", "MemoryMeter", "Profile", "Tape", "Watcher", "detect_anomaly", "draw",
           "memory_meter", "profile", "program", "record_tape", "span", "watch"]
