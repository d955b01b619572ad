"""How a kernel is compiled: by Numba, for float32 or float64 when one first comes, and kept on disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numba
from numba import types

from minigrad.kernels.bodies import made_ready
from minigrad.kernels.compiled.cache import cache_folder

# Sums may be reordered (they are, in vector registers), products contracted; infinities and NaN keep their meaning.
# Where the order of two operations matters, see `minus` in math.py.
FASTMATH = {"reassoc", "contract", "nsz", "arcp"}

# The annotations of a kernel's parameters. All arrays are C-contiguous, and one that is only read may be a read-only
# array: a gradient, or what the tape has saved.
Vector: TypeAlias = Any  # (n,), of the dtype that the kernel is compiled for
Matrix: TypeAlias = Any  # (rows, n)
Heads: TypeAlias = Any  # (batch, heads, queries, keys)
OutVector: TypeAlias = Any  # the same, written
OutMatrix: TypeAlias = Any
OutHeads: TypeAlias = Any
Booleans: TypeAlias = Any  # (n,)
HeadBooleans: TypeAlias = Any  # (batch, heads, queries, keys)
Ids: TypeAlias = Any  # (n,), int64
Number: TypeAlias = Any  # a Python number

# What they stand for, given the floating type that the kernel is compiled for.
TYPES: dict[str, Callable[[Any], Any]] = {
    "Vector": lambda floating: types.Array(floating, 1, "C", readonly=True),
    "Matrix": lambda floating: types.Array(floating, 2, "C", readonly=True),
    "OutVector": lambda floating: types.Array(floating, 1, "C"),
    "OutMatrix": lambda floating: types.Array(floating, 2, "C"),
    "Booleans": lambda floating: types.Array(types.boolean, 1, "C", readonly=True),
    "Ids": lambda floating: types.Array(types.int64, 1, "C", readonly=True),
    "Heads": lambda floating: types.Array(floating, 4, "C", readonly=True),
    "OutHeads": lambda floating: types.Array(floating, 4, "C"),
    "HeadBooleans": lambda floating: types.Array(types.boolean, 4, "C", readonly=True),
    "Number": lambda floating: floating,
}
KINDS = {"f": types.float32, "d": types.float64}  # by the character of the NumPy dtype
KERNELS: list[Kernel] = []
_making = threading.Lock()  # what makes kernels ready is one thread at a time: it sets where Numba's cache is


def helper(function: Callable[..., Any]) -> Any:
    """A function that kernels call; the compiler puts its code in their place."""
    return numba.njit(fastmath=FASTMATH, error_model="numpy")(function)


class Kernel:
    """A function on arrays, compiled for the dtype of its first argument. It runs without the interpreter lock."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.__doc__ = function, function.__doc__
        self._compiled: dict[str, Any] = {}

    def __call__(self, *args: Any) -> Any:
        """Run on arrays of one floating dtype, C-contiguous, that fit each other: nothing is checked here."""
        kind = args[0].dtype.char
        return (self._compiled.get(kind) or self.make_ready(kind))(*args)

    def make_ready(self, kind: str) -> Any:
        """Compile it for the dtype of this character, or load it from the disk; once, whichever thread is first."""
        annotations = [name for key, name in self.function.__annotations__.items() if key != "return"]
        signature = tuple(TYPES[name](KINDS[kind]) for name in annotations)
        with _making:
            if kind in self._compiled:  # another thread was faster
                return self._compiled[kind]
            start = time.perf_counter()
            try:
                with cache_folder() as folder:
                    compiled = self._make(signature, cache=folder is not None)
            except (OSError, RuntimeError):  # the folder is full or was removed; there are no sources to know it by
                compiled = self._make(signature, cache=False)
            made_ready.append((time.perf_counter() - start, bool(compiled.stats.cache_hits)))
            self._compiled[kind] = compiled
            return compiled

    def _make(self, signature: tuple[Any, ...], cache: bool) -> Any:
        options: Any = {"nogil": True, "cache": cache, "error_model": "numpy", "fastmath": FASTMATH}
        return numba.njit(signature, **options)(self.function)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Decorate a function whose parameters are annotated with the names of `TYPES`."""
    KERNELS.append(Kernel(function))
    return KERNELS[-1]
