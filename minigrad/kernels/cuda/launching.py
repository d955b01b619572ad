"""Compiling the kernels of the ``.cu`` files beside this one, at their first use, and launching them."""

import functools
import math
from pathlib import Path

from minigrad.device import is_array, xp

TILE = 64  # rows, and columns, of the part of a product that a block of threads computes
CHUNK = 4096  # elements of an array that a block takes, of many arrays


@functools.cache
def kernel(namespace, file, name, kind):
    """The kernel of this name, where `real` is float or double: `kind` is "f" or "d". CuPy keeps it on disk, too."""
    source = Path(__file__).with_name(file).read_text(encoding="utf-8")
    code = (f"typedef {'float' if kind == 'f' else 'double'} real;\n"
            f"const int TILE = {TILE}, CHUNK = {CHUNK};\n{source}")
    return namespace.RawKernel(code, name, ("-std=c++17",))


def launch(file, name, like, grid, block, *args):
    """Run a kernel for the dtype of `like`. Its arguments are arrays, None, ints and floats (64 bits each).

    In place of an array that is not contiguous it gets a copy.
    """
    if all(grid):
        given = [xp(arg).ascontiguousarray(arg) if is_array(arg) else 0 if arg is None else arg for arg in args]
        kernel(xp(like), file, name, like.dtype.char)(grid, block, given)


def launch_rows(name, like, *args):
    """Run a kernel of rows.cu, in which a block takes a row of `like`.

    Its threads take about four elements each, as far as 512 threads go.
    """
    *lengths, width = like.shape
    launch("rows.cu", name, like, (math.prod(lengths),), (min(512, max(32, -(-width // 128) * 32)),), *args)


def empty(like, *shape):
    """A contiguous array of the dtype of `like`, of this shape or that of `like`."""
    return xp(like).empty(shape or like.shape, like.dtype)
