"""The number of threads: the user's choice, or by default one that suits the model and the machine."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from minigrad import parallel

from transformer.model import TransformerConfig
from transformer.training.options import MOST_THREADS

SMALL = 64  # the largest d_model at which threads wait, for each other and the interpreter, as long as they compute
MOST = 8  # the largest default number of threads
A_GPU = 64  # the threads that a GPU counts for in a plan: enough that the layers decide, not their products
SHARD_TOKENS = 256  # the fewest tokens of a shard, so that it computes long enough between calls of the interpreter
SETTINGS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS")
_decided: ContextVar[bool] = ContextVar("transformer.training.threads", default=False)
_limiting = threading.RLock()  # held by the thread whose limit the BLAS has


def usable_threads(processes: int = 1) -> int:
    """The cores that this process may use, at most `MOST`; or the value of OPENBLAS_NUM_THREADS or the like.

    So many `processes` share the machine; a launcher may have bound each of them to cores of its own.
    """
    for name in SETTINGS:
        value = os.environ.get(name, "")
        if value.isdecimal() and int(value) > 0:
            return min(int(value), MOST_THREADS)
    there = os.cpu_count() or 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    return min(max(1, there // processes), cores, MOST)


def dividing_threads(config: TransformerConfig, threads: int, batch_tokens: int) -> int:
    """How many of `threads` threads divide each training batch: those of `ParallelGradients`, each with a shard.

    Each shard needs enough work, since it adds a sum of the gradients of all parameters. The batch of a small model
    goes to one thread: its operations are so short that threads would wait for the interpreter's lock. If a batch is
    not divided, the threads share each matrix product.
    """
    return 1 if config.d_model <= SMALL else max(1, min(threads, batch_tokens // SHARD_TOKENS))


@contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Within the block, matrix products use `threads` threads, whatever the model.

    A BLAS has one number for the whole process. The first thread that is in such a block decides; one that enters
    meanwhile changes nothing, so that the number is what it was before once all have left, in whatever order.
    """
    token, first = _decided.set(True), _limiting.acquire(blocking=False)
    try:
        with threadpool_limits(threads) if first else nullcontext():
            yield
    finally:
        if first:
            _limiting.release()
        _decided.reset(token)


@contextmanager
def decoding_threads(config: TransformerConfig, threads: int | None, device: str = "cpu") -> Iterator[None]:
    """Within the block, decoding uses `threads` threads; None: all usable ones, or one for a small model.

    Each thread decodes a part of the batch, if the batch has enough sentences (`minigrad.parallel`), and computes its
    products alone. With a small model the threads share each matrix product. On a GPU no batch is divided.
    """
    if config.d_model > SMALL and device == "cpu":
        with limit_threads(1), parallel.threads(threads or usable_threads()):
            yield
    else:
        with suitable_products(config, threads):
            yield


@contextmanager
def suitable_products(config: TransformerConfig, threads: int | None = None) -> Iterator[None]:
    """Within the block, matrix products use `threads` threads; None: one for a small model, else as the BLAS decides.

    The threads of a BLAS wait for each other at every product. With small products the wait costs more than the threads
    gain, and much more where another program keeps a core busy. A number from `limit_threads`, or from an environment
    variable such as OPENBLAS_NUM_THREADS, takes precedence over None.
    """
    decided = config.d_model > SMALL or _decided.get() or any(name in os.environ for name in SETTINGS)
    with nullcontext() if threads is None and decided else limit_threads(threads or 1):
        yield
