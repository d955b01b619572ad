"""A setting of the C library that training profits from."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # glibc's malloc.h: M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX
_NEVER = 2**31 - 1


def keep_freed_memory() -> bool:
    """Let the process keep the memory of freed arrays for the next ones; returns whether it could be asked for.

    Every training step allocates the same large arrays again. By default glibc gives such memory back to the kernel
    when it is freed, and every first touch of fresh memory is then a page fault: a tenth to a fifth of a step on a CPU.
    And it gives each thread a heap of its own, where the others cannot use what one has freed; now they share one.
    Elsewhere than on Linux with glibc nothing is done.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(*setting) for setting in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_ARENA_MAX, 1)))
