"""Sorting. Which element goes where is found by `argsort`, which has no gradient; the values are then read there, and
the gradient of reading at places takes each back to where its element stood.
"""

from __future__ import annotations

from typing import Any

from minigrad.arguments import public, whole_number
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.indexing import gather_at
from minigrad.ops.more.one_axis import along_one_axis


@primitive
def _argsort(x, axis, descending):
    if not descending:
        return xp(x).argsort(x, axis=axis, kind="stable")
    # The order of the reversed elements, reversed: so equal ones stay in theirs.
    backwards = xp(x).argsort(xp(x).flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - xp(x).flip(backwards, axis)


_argsort.no_gradient()


@public
def argsort(x: Any, axis: int | None = -1, descending: bool = False) -> Any:
    """The indices, int64, that would sort x along `axis` (the flattened x if it is None). Has no gradient.

    NaN counts as the largest. Equal elements keep their order, in a descending sort too.
    """
    return along_one_axis(_argsort, x, axis, "argsort", bool(descending))


@public
def sort(x: Any, axis: int | None = -1, descending: bool = False) -> Any:
    """x sorted along `axis` (flattened if it is None): the values alone, as in NumPy; `argsort` gives the places.

    The smallest comes first, or the largest if `descending`; NaN counts as the largest. Equal elements keep their
    order, and each its own gradient.
    """
    return along_one_axis(_sort, x, axis, "sort", bool(descending))


def _sort(x: Any, axis: int, descending: bool) -> Any:
    return gather_at(x, _argsort(x, axis, descending), axis)


@public
def topk(input: Any, k: int, axis: int | None = -1, largest: bool = True) -> tuple[Any, Any]:
    """The k largest (or smallest) elements along `axis`, and their indices, as in PyTorch: the best first.

    Args:
        input: (…, n, …)
        k: from 0 to n.

    Returns:
        values (…, k, …), differentiable, and indices (…, k, …), int64.

    Raises:
        ValueError: a k that the axis has not; IndexError: an axis that the input lacks.
    """
    k = whole_number(k, "k", "topk", least=None)
    values, indices = along_one_axis(_topk, input, axis, "topk", k, bool(largest))
    return values, indices


def _topk(input: Any, axis: int, k: int, largest: bool) -> tuple[Any, Any]:
    n = input.shape[axis]
    if not 0 <= k <= n:
        raise ValueError(f"topk: k must be from 0 to {n}, the length of axis {axis} of shape {tuple(input.shape)}, "
                         f"got {k}")
    first = (*(slice(None),) * (axis % len(input.shape)), slice(0, k))
    indices = _argsort(input, axis, largest)[first]
    return gather_at(input, indices, axis), indices
