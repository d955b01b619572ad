"""How many threads the matrix products use: what the user decides, or else what suits the model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from transformer.config import TransformerConfig

SMALL = 128  # d_model up to which a product is too small for threads to gain anything by sharing it
_SETTINGS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS")
_decided: ContextVar[bool] = ContextVar("transformer.threads", default=False)


@contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Within the block, `threads` threads for matrix products, whatever the model."""
    token = _decided.set(True)
    try:
        with threadpool_limits(threads):
            yield
    finally:
        _decided.reset(token)


@contextmanager
def suitable_threads(config: TransformerConfig) -> Iterator[None]:
    """Within the block, one thread for the matrix products of a small model; else all cores, as the BLAS has it.

    The threads of a BLAS wait for each other at every product. With small ones that costs more than is gained, and much
    more where another program keeps one of the cores busy. What `limit_threads` or an environment variable such as
    OPENBLAS_NUM_THREADS decided stands.
    """
    if config.d_model > SMALL or _decided.get() or any(name in os.environ for name in _SETTINGS):
        yield
    else:
        with limit_threads(1):
            yield
