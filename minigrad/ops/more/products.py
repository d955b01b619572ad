"""Products made of the matrix product and of broadcasting: they have no gradient rules of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad.arguments import public, single_axis, whole_number
from minigrad.device import is_array, to_numpy
from minigrad.ops.arithmetic import mul
from minigrad.ops.linalg import matmul
from minigrad.ops.shape import require_arrays, reshape, stack, transpose, unbind


@public
def outer(x: Any, y: Any) -> Any:
    """``out[i, j] = x[i] · y[j]``, of the flattened operands."""
    require_arrays("outer", x, y)
    return mul(reshape(x, (math.prod(x.shape), 1)), reshape(y, (1, math.prod(y.shape))))


@public
def dot(x: Any, y: Any) -> Any:
    """NumPy's dot: of vectors the inner, of matrices the matrix product, with a number (also one of Python's) x · y.

    Of more dimensions it is the sum over the last axis of x and the last but one of y, ``out[i…, j…, m] =
    Σ_k x[i…, k] · y[j…, k, m]``. `matmul`, which goes by batches, is what networks need.
    """
    if _any_number("dot", x, y):
        return mul(x, y)
    if len(x.shape) <= 2 and len(y.shape) <= 2:
        return matmul(x, y)
    return _contract(x, y, (-1,), (-2 if len(y.shape) > 1 else -1,), "dot")


@public
def inner(x: Any, y: Any) -> Any:
    """The sum over the last axes of both, ``out[i…, j…] = Σ_k x[i…, k] · y[j…, k]``; with a number x · y."""
    if _any_number("inner", x, y):
        return mul(x, y)
    return _contract(x, y, (-1,), (-1,), "inner")


def _any_number(operation: str, *operands: Any) -> bool:
    """Whether one of the operands has no dimensions; TypeError for one that is neither an array nor a number."""
    arrays = [x for x in operands if not isinstance(x, (bool, int, float))]
    require_arrays(operation, *arrays)
    return len(arrays) < len(operands) or any(not len(x.shape) for x in arrays)


@public
def tensordot(x: Any, y: Any, axes: int | Sequence[Any] = 2) -> Any:
    """The sum of products over several axes of x and y; the others of x, then those of y, are left.

    Args:
        axes: n, for the last n axes of x and the first n of y, in order; or a pair (axes of x, axes of y), each an int
            or several.

    Raises:
        ValueError: axes of different lengths, or more of one operand than of the other, a negative n; IndexError: an
            axis that is not; TypeError: one that is no int.
    """
    require_arrays("tensordot", x, y)
    if is_array(axes):
        axes = to_numpy(axes).tolist()
    if isinstance(axes, (list, tuple)):
        if len(axes) != 2:
            raise ValueError(f"tensordot: axes must be an int or a pair (axes of x, axes of y), got {axes}")
        of_x, of_y = (tuple(a) if isinstance(a, (list, tuple)) else (a,) for a in axes)
    else:
        count = whole_number(axes, "axes", "tensordot", least=0)
        of_x, of_y = tuple(range(-count, 0)), tuple(range(count))
    return _contract(x, y, of_x, of_y, "tensordot")


def _contract(x: Any, y: Any, of_x: tuple[int, ...], of_y: tuple[int, ...], operation: str) -> Any:
    """One matrix product of x, the axes `of_x` last, and y, the axes `of_y` first."""
    for shape, axes in ((x.shape, of_x), (y.shape, of_y)):
        for a in axes:
            single_axis(a, shape, operation)
        if len({a % len(shape) for a in axes}) < len(axes):
            raise ValueError(f"{operation}: {axes} names an axis twice, for shape {tuple(shape)}")
    lengths = tuple(x.shape[a] for a in of_x)
    if lengths != tuple(y.shape[a] for a in of_y):
        raise ValueError(f"{operation}: axes {of_x} of {tuple(x.shape)} and {of_y} of {tuple(y.shape)} must have the "
                         "same lengths")
    left = _others(x, of_x)
    right = _others(y, of_y)
    rows, columns = (tuple(z.shape[a] for a in kept) for z, kept in ((x, left), (y, right)))
    x = reshape(transpose(x, (*left, *_positive(of_x, x))), (math.prod(rows), math.prod(lengths)))
    y = reshape(transpose(y, (*_positive(of_y, y), *right)), (math.prod(lengths), math.prod(columns)))
    return reshape(matmul(x, y), rows + columns)


def _positive(axes: tuple[int, ...], x: Any) -> tuple[int, ...]:
    return tuple(a % len(x.shape) for a in axes)


def _others(x: Any, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of x that are not in `axes`."""
    return tuple(a for a in range(len(x.shape)) if a not in _positive(axes, x))


@public
def kron(x: Any, y: Any) -> Any:
    """The Kronecker product: x with each element replaced by itself times y. The shorter shape gets ones in front."""
    require_arrays("kron", x, y)
    ndim = max(len(x.shape), len(y.shape))
    of_x, of_y = ((1,) * (ndim - len(z.shape)) + tuple(z.shape) for z in (x, y))
    blocks = mul(reshape(x, tuple(n for length in of_x for n in (length, 1))),
                 reshape(y, tuple(n for length in of_y for n in (1, length))))
    return reshape(blocks, tuple(n * m for n, m in zip(of_x, of_y, strict=True)))


@public
def cross(x: Any, y: Any, axis: int = -1) -> Any:
    """The cross product of the vectors of x and y along `axis`, of three elements each; the other axes broadcast."""
    require_arrays("cross", x, y)
    for z in (x, y):
        single_axis(axis, z.shape, "cross")
        if z.shape[axis] != 3:
            raise ValueError(f"cross: the vectors along axis {axis} must have 3 elements, got shapes {tuple(x.shape)} "
                             f"and {tuple(y.shape)}")
    (x1, x2, x3), (y1, y2, y3) = unbind(x, axis), unbind(y, axis)
    return stack([x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1], axis)
