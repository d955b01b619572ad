"""Compiling the kernels of the ``.cu`` files beside this one, at their first use, and launching them."""

from __future__ import annotations

import functools
import importlib
import math
import os
from typing import Any

from minigrad.device import xp

TILE = 64  # rows, and columns, of the part of a product that a block of threads computes
CHUNK = 4096  # elements of an array that a block takes, of many arrays


@functools.cache
def kernel(file: str, name: str, kind: str) -> Any:
    """The kernel of this name, where `real` is float or double: `kind` is "f" or "d". CuPy keeps it on disk, too."""
    with open(os.path.join(os.path.dirname(__file__), file), encoding="utf-8") as source:
        code = (f"typedef {'float' if kind == 'f' else 'double'} real;\n"
                f"const int TILE = {TILE}, CHUNK = {CHUNK};\n{source.read()}")
    return importlib.import_module("cupy").RawKernel(code, name, ("-std=c++17",))


def launch(file: str, name: str, like: Any, grid: tuple[int, ...], block: tuple[int, ...], *args: Any) -> None:
    """Run a kernel for the dtype of `like`. Its arguments are arrays, None, ints and floats (64 bits each)."""
    if all(grid):
        kernel(file, name, like.dtype.char)(grid, block, [0 if arg is None else arg for arg in args])


def launch_rows(name: str, like: Any, *args: Any) -> None:
    """Run a kernel of rows.cu, in which a block takes a row of `like`."""
    launch("rows.cu", name, like, (math.prod(like.shape[:-1]),), block_of(like), *args)


def block_of(rows: Any) -> tuple[int]:
    """The threads of a block that takes a row: about four elements for each, as far as 512 threads go."""
    return (min(512, max(32, -(-rows.shape[-1] // 128) * 32)),)


def dense(x: Any) -> Any:
    """The array, or a contiguous copy of it; None for None."""
    return None if x is None else xp(x).ascontiguousarray(x)
