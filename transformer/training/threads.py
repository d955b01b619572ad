"""How many threads: what the user decides, or else what suits the model and the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from minigrad import parallel

from transformer.model import TransformerConfig

SMALL = 128  # d_model up to which threads wait for each other, and for the interpreter, as long as they compute
MOST = 8  # threads that are taken without being asked for
SHARD_TOKENS = 256  # of a batch; a shard with fewer has little to compute between two calls of the interpreter
SETTINGS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS")
_decided: ContextVar[bool] = ContextVar("transformer.training.threads", default=False)


def usable_threads() -> int:
    """The cores that this process may use, at most `MOST`; or what a variable such as OPENBLAS_NUM_THREADS says."""
    for name in SETTINGS:
        value = os.environ.get(name, "")
        if value.isdecimal() and int(value) > 0:
            return int(value)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST)


def suitable_threads(config: TransformerConfig, batch_tokens: int) -> int:
    """How many threads a training run takes if nobody says.

    One for a small model: others would gain it little, and lose it much where another program keeps a core busy. Else
    all that can be used, as long as each has work enough. A function of the sizes and the machine, not of any timing.
    """
    if config.d_model <= SMALL:
        return 1
    return max(1, min(usable_threads(), batch_tokens // SHARD_TOKENS))


def shards_of(config: TransformerConfig, threads: int, batch_tokens: int) -> int:
    """Over how many threads to divide each batch of training, of the `threads` there are; see `ParallelGradients`.

    Over all of them, as long as each has work enough: the gradients of all parameters are summed for it. And of a small
    model operations are so short that the threads would wait for the interpreter's lock. Where a batch is not divided,
    the threads share each matrix product.
    """
    return 1 if config.d_model <= SMALL else max(1, min(threads, batch_tokens // SHARD_TOKENS))


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
def decoding_threads(config: TransformerConfig, threads: int | None, device: str = "cpu") -> Iterator[None]:
    """Within the block, decoding uses `threads` threads; None: all that can be used, and one for a small model.

    Each decodes a part of the batch, with one thread for its products, where a batch has sentences enough
    (`minigrad.parallel`); those of a small model share each matrix product. Of models on a GPU no batch is divided.
    """
    if config.d_model > SMALL and device == "cpu":
        with limit_threads(1), parallel.threads(threads or usable_threads()):
            yield
    elif threads is None:
        yield  # see `suitable_products`
    else:
        with limit_threads(threads):
            yield


@contextmanager
def suitable_products(config: TransformerConfig) -> Iterator[None]:
    """Within the block, one thread for the matrix products of a small model; else all cores, as the BLAS has it.

    The threads of a BLAS wait for each other at every product. With small ones that costs more than is gained, and much
    more where another program keeps one of the cores busy. What `limit_threads` or an environment variable such as
    OPENBLAS_NUM_THREADS decided stands.
    """
    if config.d_model > SMALL or _decided.get() or any(name in os.environ for name in SETTINGS):
        yield
    else:
        with limit_threads(1):
            yield
