"""Faster bodies for the hot operations, which run in place of their definitions and are held to them by tests.

`minigrad.kernels.host` has those that run by default. `minigrad.kernels.compiled` has those that need Numba: optional,
off until `jit` switches them on, and imported by the first `jit`; `compile_time` says what making them ready has cost.

`explain_path` tells which bodies a computation ran. `only_definitions` switches all off. `faster_body` registers one,
and `check_body` holds it to the definition (docs/kernels.md).
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from minigrad.device.local import Setting
from minigrad.engine.primitive import body_kinds, only_definitions
from minigrad.kernels.bodies import JIT, faster_body, is_jit_on, made_ready
from minigrad.kernels.checking import BodyCheck, BodyError, check_body
from minigrad.kernels.paths import PathExplanation, PathWatcher, Step, explain_path, report_choice

__all__ = [
    "BodyCheck", "BodyError", "CompileTime", "PathExplanation", "PathWatcher", "Step", "check_body", "compile_time",
    "compiled_before", "explain_path", "faster_body", "is_jit_on", "jit", "load", "made_ready", "only_definitions",
    "report_choice",
]


def jit(enabled: bool = True) -> Setting[Any]:
    """``with jit():`` lets hot functions run as compiled kernels, as does ``@jit()``; `enabled` False switches back.

    Local to the thread or task; threads that run in a copy of its context see it too. A kernel runs where its operands
    are float32 or float64 arrays of one dtype in host memory, C-contiguous; all else runs as NumPy, and so does
    whatever `fused` switches to its composition. Results differ by rounding alone; random masks are the same bits.

    A kernel is compiled when a dtype first needs it, and kept on disk for later runs (docs/kernels.md).

    Raises:
        ImportError: Numba is not installed.
    """
    if enabled:
        load()
        return Setting(body_kinds, lambda kinds: kinds | {JIT})
    return Setting(body_kinds, lambda kinds: kinds - {JIT})


def load() -> None:
    """Import the compiled kernels, which registers their bodies. ImportError if Numba is missing."""
    try:
        importlib.import_module("minigrad.kernels.compiled.all")
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise  # Numba is there, and something that it needs is not: its own message says what
        message = "minigrad.jit needs the package 'numba', from  pip install 'minigrad-transformer[jit]'"
        raise ImportError(message, name="numba") from None


def compiled_before() -> bool:
    """Whether kernels of these sources are on the disk already. ImportError if Numba is missing."""
    load()
    from minigrad.kernels.compiled.cache import cache_folder

    with cache_folder() as folder:
        return folder is not None and any(folder.iterdir())


class CompileTime(NamedTuple):
    """What making kernels ready has cost this process.

    Attributes:
        seconds: spent on it.
        compiled: how many were compiled.
        loaded: how many came from the cache on disk.
    """

    seconds: float
    compiled: int
    loaded: int


def compile_time() -> CompileTime:
    """What making kernels ready has cost this process so far. A kernel is made ready when a dtype first needs it."""
    loaded = sum(from_disk for _, from_disk in made_ready)
    return CompileTime(sum(seconds for seconds, _ in made_ready), len(made_ready) - loaded, loaded)


def install() -> None:
    """Register the bodies that run by default."""
    for name in ("attention", "dropout", "embedding", "indexing", "linear", "linear_cross_entropy", "loss", "matrices",
                 "normalization", "reduction", "selection", "softmax"):
        importlib.import_module(f"minigrad.kernels.host.{name}")
