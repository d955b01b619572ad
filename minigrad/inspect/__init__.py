"""Tools that watch a computation: the profile, memory, anomalies, the tape as text, the graph as a picture.

All are interpreters (`minigrad.engine.interpreters`): they work on any program, on every device, and cost nothing
outside of their blocks. ``import minigrad`` does not load them; ``from minigrad import inspect`` does.
"""

from minigrad.engine.interpreters import span
from minigrad.inspect.anomaly import AnomalyError, detect_anomaly
from minigrad.inspect.graph import Drawing, draw
from minigrad.inspect.hooks import Event, op_hook
from minigrad.inspect.memory import MemoryMeter, memory_meter
from minigrad.inspect.profiler import Profile, profile
from minigrad.inspect.recorder import Tape, record_tape

__all__ = ["AnomalyError", "Drawing", "Event", "MemoryMeter", "Profile", "Tape", "detect_anomaly", "draw",
           "memory_meter", "op_hook", "profile", "record_tape", "span"]
