"""Sorting. Which element goes where is found by `argsort`, which has no gradient; the values are then read there, and
the gradient of reading at places takes each back to where its element stood.
"""

from __future__ import annotations

from typing import Any

from minigrad.arguments import public, whole_number
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.comparison import equal
from minigrad.ops.indexing import gather_at
from minigrad.ops.more.one_axis import along_one_axis
from minigrad.ops.more.reduction import axes_last
from minigrad.ops.reduction import Axis, keep_reduced, mean
from minigrad.ops.selection import where
from minigrad.ops.shape import require_arrays


@primitive
def _argsort(x, axis, descending, stable):
    kind = "stable" if stable else None
    if not descending:
        return xp(x).argsort(x, axis=axis, kind=kind)
    # The order of the reversed elements, reversed: so equal ones stay in theirs.
    backwards = xp(x).argsort(xp(x).flip(x, axis), axis=axis, kind=kind)
    return x.shape[axis] - 1 - xp(x).flip(backwards, axis)


@primitive
def _partition(x, k, axis, largest):
    """The indices of the k largest or smallest along `axis`, in no particular order."""
    n = x.shape[axis]
    place = slice(n - k, n) if largest else slice(0, k)
    kth = min(max(n - k if largest else k - 1, 0), n - 1)
    indices = xp(x).argpartition(x, kth, axis=axis) if n else xp(x).argsort(x, axis=axis)
    return indices[(*(slice(None),) * (axis % x.ndim), place)]


_argsort.no_gradient()
_partition.no_gradient()


@public
def argsort(x: Any, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Any:
    """The indices, int64, that would sort x along `axis` (the flattened x if it is None). Has no gradient.

    NaN counts as the largest. `stable`: equal elements keep their order, in a descending sort too.
    """
    return along_one_axis(_argsort, x, axis, "argsort", bool(descending), bool(stable))


@public
def sort(x: Any, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Any:
    """x sorted along `axis` (flattened if it is None): the values alone, as in NumPy; `argsort` gives the places.

    The smallest comes first, or the largest if `descending`; NaN counts as the largest. Equal elements keep their
    order if `stable`, and each its own gradient.
    """
    return along_one_axis(_sort, x, axis, "sort", bool(descending), bool(stable))


def _sort(x: Any, axis: int, descending: bool, stable: bool) -> Any:
    return gather_at(x, _argsort(x, axis, descending, stable), axis)


@public
def topk(input: Any, k: int, axis: int | None = -1, largest: bool = True, sorted: bool = True) -> tuple[Any, Any]:
    """The k largest (or smallest) elements along `axis`, and their indices, as in PyTorch.

    Args:
        input: (…, n, …)
        k: from 0 to n.
        sorted: the best first, and of equal ones the first first. Otherwise in no particular order, and found quicker.

    Returns:
        values (…, k, …), differentiable, and indices (…, k, …), int64.

    Raises:
        ValueError: a k that the axis has not; IndexError: an axis that the input lacks.
    """
    k = whole_number(k, "k", "topk", least=None)
    values, indices = along_one_axis(_topk, input, axis, "topk", k, bool(largest), bool(sorted))
    return values, indices


def _topk(input: Any, axis: int, k: int, largest: bool, sorted: bool) -> tuple[Any, Any]:
    n = input.shape[axis]
    if not 0 <= k <= n:
        raise ValueError(f"topk: k must be from 0 to {n}, the length of axis {axis} of shape {tuple(input.shape)}, "
                         f"got {k}")
    if sorted:
        first = (*(slice(None),) * (axis % len(input.shape)), slice(0, k))
        indices = _argsort(input, axis, largest, True)[first]
    else:
        indices = _partition(input, k, axis, largest)
    return gather_at(input, indices, axis), indices


@public
def median(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The median over `axis`, of an even number of elements the mean of the two in the middle, as in NumPy.

    (PyTorch's is the lower of the two.) Integers give float32; NaN gives NaN.
    """
    require_arrays("median", x)
    rows = axes_last(x, axis)
    n = rows.shape[-1]
    if not n:
        raise ValueError(f"median: of no elements, over axis {axis} of shape {tuple(x.shape)}")
    ordered = sort(rows, -1)
    middle, last = mean(ordered[..., (n - 1) // 2:n // 2 + 1], -1), ordered[..., -1]
    out = where(equal(last, last), middle, last)
    return keep_reduced(out, tuple(x.shape), axis, False) if keepdims else out
