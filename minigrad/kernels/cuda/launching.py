"""Compiling the kernels of the ``.cu`` files beside this one, at their first use, and launching them."""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any


@functools.cache
def kernel(file: str, name: str, kind: str) -> Any:
    """The kernel of this name, where `real` is float or double: `kind` is "f" or "d". CuPy keeps it on disk, too."""
    with open(os.path.join(os.path.dirname(__file__), file), encoding="utf-8") as source:
        code = f"typedef {'float' if kind == 'f' else 'double'} real;\n{source.read()}"
    return importlib.import_module("cupy").RawKernel(code, name, ("-std=c++17",))


def launch(file: str, name: str, like: Any, grid: tuple[int, ...], block: tuple[int, ...], *args: Any) -> None:
    """Run a kernel for the dtype of `like`. Its arguments are arrays, None, ints and floats (64 bits each)."""
    if all(grid):
        kernel(file, name, like.dtype.char)(grid, block, [0 if arg is None else arg for arg in args])


def for_rows(count: int, width: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Grid and block where a block takes a row: about four elements for a thread, as far as 512 threads go."""
    return (count,), (min(512, max(32, -(-width // 128) * 32)),)
