"""Running extremes. Where each stands is found by a scan, which has no gradient; the values are then read there."""

from __future__ import annotations

from typing import Any

from minigrad.arguments import public
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.indexing import gather_at
from minigrad.ops.more.one_axis import along_one_axis


@primitive
def _extreme_so_far(x, axis, largest):
    """For each place along `axis` the index of the extreme up to there; of equal ones that of the last."""
    namespace = xp(x)
    better = namespace.maximum if largest else namespace.minimum
    values = namespace.moveaxis(x, axis, 0).copy()
    elements, reach = values.copy(), 1
    while reach < len(values):  # each place holds the extreme of `reach` elements, and then of twice as many
        values[reach:] = better(values[reach:], values[:-reach])
        reach *= 2
    rows = namespace.arange(len(values)).reshape((-1,) + (1,) * (x.ndim - 1))
    found = namespace.where((elements == values) | (elements != elements), rows, 0)  # where a new extreme stands
    reach = 1
    while reach < len(found):
        found[reach:] = namespace.maximum(found[reach:], found[:-reach])
        reach *= 2
    return namespace.moveaxis(found, 0, axis)


_extreme_so_far.no_gradient()


@public
def cummax(x: Any, axis: int | None) -> Any:
    """The largest element up to each place along `axis`: the values alone, where PyTorch returns indices, too.

    With None for the axis x is flattened. Of elements that tie the last gets the gradient, as in PyTorch. NaN counts as
    the largest.
    """
    return along_one_axis(_so_far, x, axis, "cummax", True)


@public
def cummin(x: Any, axis: int | None) -> Any:
    """The smallest element up to each place along `axis`: the values alone. None, ties and NaN as in `cummax`."""
    return along_one_axis(_so_far, x, axis, "cummin", False)


def _so_far(x: Any, axis: int, largest: bool) -> Any:
    return gather_at(x, _extreme_so_far(x, axis, largest), axis)
