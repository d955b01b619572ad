"""A stand-in for CuPy on machines without a GPU: as strict as CuPy, and computed by NumPy.

It exists to make a test fail where a GPU would. Its array is no NumPy array, refuses NumPy operands and
implicit conversion, keeps 0-d results on the device, has only the names and keywords of a real CuPy
(names.json, which make_names.py wrote), wraps integer-array indices that are out of range, lets
``broadcast_to`` views be written, knows which of its two devices is the current one, counts how often the host
waits (``synchronizations``) and sends an array (``uploads``, ``uploaded_bytes``), and has a limited ``memory``.

It enters by ``minigrad.device.array_module(cupy, special)``; the fixtures of tests/conftest.py do that.
"""

from tests.strict_cupy import operators as operators  # gives the array its operators and methods
from tests.strict_cupy.machine import clear, synchronizations, uploaded_bytes, uploads
from tests.strict_cupy.memory import memory
from tests.strict_cupy.namespace import cupy, special

__all__ = ["clear", "cupy", "memory", "special", "synchronizations", "uploaded_bytes", "uploads"]
