"""Triangles and diagonals of matrices."""

from __future__ import annotations

from typing import Any

from minigrad.arguments import public, single_axis, whole_number
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.indexing import put_into_zeros
from minigrad.ops.more.shape import moveaxis
from minigrad.ops.shape import require_arrays, reshape


def _require_matrices(x: Any, operation: str) -> None:
    if x.ndim < 2:
        raise ValueError(f"{operation}: needs at least two dimensions, got shape {tuple(x.shape)}")


@primitive(fresh=True)
def tril(x, k=0):
    """x with everything above the k-th diagonal of its last two axes set to 0."""
    _require_matrices(x, "tril")
    return xp(x).tril(x, whole_number(k, "k", "tril", least=None))


tril.gradient(x=lambda g, k: tril(g, k))


@primitive(fresh=True)
def triu(x, k=0):
    """x with everything below the k-th diagonal of its last two axes set to 0."""
    _require_matrices(x, "triu")
    return xp(x).triu(x, whole_number(k, "k", "triu", least=None))


triu.gradient(x=lambda g, k: triu(g, k))


def _on_diagonal(rows: int, columns: int, offset: int) -> slice:
    """Where the `offset`-th diagonal stands in a matrix laid out in one row: every ``columns + 1`` elements."""
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    start = offset if offset >= 0 else -offset * columns
    return slice(start, start + (count - 1) * (columns + 1) + 1, columns + 1) if count else slice(0, 0)


@public
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The `offset`-th diagonal of the matrices in `axis1` and `axis2`, as the last axis; a view where possible."""
    require_arrays("diagonal", x)
    ndim = len(x.shape)
    if ndim < 2:
        raise ValueError(f"diagonal: needs at least two dimensions, got shape {tuple(x.shape)}")
    for a in (axis1, axis2):
        single_axis(a, x.shape, "diagonal")
    if axis1 % ndim == axis2 % ndim:
        raise ValueError(f"diagonal: axis1 and axis2 must differ, got {axis1} and {axis2}")
    offset = whole_number(offset, "offset", "diagonal", least=None)
    matrices = moveaxis(x, (axis1, axis2), (-2, -1))
    *others, rows, columns = matrices.shape
    return reshape(matrices, (*others, rows * columns))[..., _on_diagonal(rows, columns, offset)]


@public
def diag(x: Any, k: int = 0) -> Any:
    """Of a vector the square matrix with it on the k-th diagonal; of a matrix its k-th diagonal. As in NumPy."""
    require_arrays("diag", x)
    k = whole_number(k, "k", "diag", least=None)
    if len(x.shape) == 2:
        return diagonal(x, k)
    if len(x.shape) != 1:
        raise ValueError(f"diag: needs a vector or a matrix, got shape {tuple(x.shape)}; diagonal takes more")
    n = x.shape[0] + abs(k)
    return reshape(put_into_zeros(x, _on_diagonal(n, n, k), (n * n,)), (n, n))


@public
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The sum of the `offset`-th diagonal of the matrices in `axis1` and `axis2`."""
    return diagonal(x, offset, axis1, axis2).sum(axis=-1)
