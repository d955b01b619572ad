"""How much memory this process has, and had at most."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

MIB = 2**20
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes


def now() -> float:
    """Resident memory in MiB; where the system does not say, the most that it has been."""
    return _status("VmRSS")


def peak() -> float:
    """The most resident memory in MiB since the start, or since `forget_peak`."""
    return _status("VmHWM")


def forget_peak() -> None:
    """Let `peak` count from here, where the system can (Linux)."""
    if _CLEAR.exists():
        _CLEAR.write_text("5", encoding="ascii")


def _status(field: str) -> float:
    """A line of /proc/self/status, "VmHWM:  123 kB"; elsewhere than on Linux ru_maxrss."""
    if not _STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT / MIB
    lines = dict(line.split(":", 1) for line in _STATUS.read_text(encoding="utf-8").splitlines())
    return int(lines[field].split()[0]) * 1024 / MIB
