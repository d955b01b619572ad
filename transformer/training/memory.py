"""The memory of the host: how much a model takes, and settings of the C library that make training faster."""

import ctypes
import os
from contextlib import suppress

from minigrad.inspect.table import size

from transformer.model import TransformerConfig

_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # glibc's malloc.h: M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX
_NEVER = 2**31 - 1


def keep_freed_memory() -> bool:
    """Make the process keep the memory of freed arrays for later ones; returns whether glibc accepted the settings.

    Every training step allocates the same large arrays again. By default glibc returns freed memory of such arrays to
    the kernel, and every first access to new memory is a page fault: a tenth to a fifth of a step on a CPU. By default,
    too, each thread has its own heap, whose free memory the others cannot use; with these settings they share one.
    On systems other than Linux with glibc the function does nothing.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    return all(mallopt(*setting) for setting in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_ARENA_MAX, 1)))


def multiplications(config: TransformerConfig) -> tuple[int, int]:
    """The elements of all matrices that a source token is multiplied by, and a target token."""
    square, inner = config.d_model ** 2, 2 * config.d_model * config.d_ff
    return (config.num_encoder_layers * (4 * square + inner),
            config.num_decoder_layers * (8 * square + inner) + config.d_model * config.target_vocab_size)


def require_memory_for(config: TransformerConfig) -> None:
    """MemoryError if the host has less memory than training takes at least: matrices, gradients and two moments.

    An attempt would fill the memory first, part by part, until the system kills the program.
    """
    with suppress(AttributeError, ValueError, OSError):  # a system that does not say
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if 16 * (sum(multiplications(config)) + config.max_length * config.d_model) > there > 0:
            raise MemoryError(f"the model takes more than the {size(there)} that this machine has")
