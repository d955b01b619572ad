"""Differences of neighbours along an axis, and the slopes that they estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.arguments import numbers_on, public, single_axis, whole_number
from minigrad.device import device_of, is_array
from minigrad.engine.node import TensorBase, wrap
from minigrad.ops.comparison import not_equal
from minigrad.ops.indexing import raw
from minigrad.ops.more.places import values_for
from minigrad.ops.reduction import Axis, normalize_axes
from minigrad.ops.shape import broadcast_to, concatenate, require_arrays, reshape


@public
def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """The differences ``x[i + 1] - x[i]`` along `axis`, taken `n` times; of booleans whether the two differ.

    Args:
        prepend, append: what is put before and after x first: a number, or a tensor or an array of x's shape but along
            `axis`; a number counts as one place.
    """
    require_arrays("diff", x)
    single_axis(axis, x.shape, "diff")
    n = whole_number(n, "n", "diff", least=0)
    if n and (prepend is not None or append is not None):
        ends = [_end(part, x, axis) for part in (prepend, append)]
        x = concatenate([part for part in (ends[0], x, ends[1]) if part is not None], axis)
    for _ in range(n):
        after, before = x[_slice(x, axis, 1, None)], x[_slice(x, axis, None, -1)]
        x = not_equal(after, before) if x.dtype.kind == "b" else after - before
    return x


def _end(part: Any, x: Any, axis: int) -> Any:
    """What is put before or after x, as a tensor or an array that can be joined to it."""
    if part is None:
        return None
    if not isinstance(part, TensorBase) and not is_array(part):
        part = values_for(x, part, "diff")
    if len(part.shape):
        return part
    shape = tuple(1 if i == axis % len(x.shape) else n for i, n in enumerate(x.shape))
    return broadcast_to(part, shape)


def _slice(x: Any, axis: int, start: int | None, stop: int | None) -> tuple[slice, ...]:
    return (*(slice(None),) * (axis % len(x.shape)), slice(start, stop))


@public
def gradient(x: Any, *spacings: Any, axis: Axis = None, edge_order: int = 1) -> Any:
    """The slopes of x along its axes by central differences, second-order accurate: NumPy's gradient.

    (The gradient of a computation is `minigrad.grad`.)

    Args:
        x: (…), at least ``edge_order + 1`` elements along each of the axes.
        spacings: the distance of neighbours: none for 1, a number for all axes, or for each axis a number or the
            coordinates along it, a tensor, an array or a list of its length.
        axis: an int or a tuple; None for all.
        edge_order: 1 or 2, the order of the one-sided differences at both ends.

    Returns:
        A tensor of x's shape for one axis, a tuple of them for several.

    Raises:
        ValueError: too few elements, coordinates of another length, another edge_order.
        TypeError: more spacings than axes.
    """
    require_arrays("gradient", x)
    axes = normalize_axes(axis, len(x.shape))
    if isinstance(axis, tuple):  # the slopes come in the order in which the axes were given
        axes = tuple(a % len(x.shape) for a in axis)
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}")
    if len(spacings) not in (0, 1, len(axes)) or (len(spacings) == 1 < len(axes) and _is_several(spacings[0])):
        raise TypeError(f"gradient: spacing must be a number, or one for each of the {len(axes)} axes, got "
                        f"{len(spacings)}")
    x = x if x.dtype.kind == "f" else x * 1.0
    given = spacings or (1.0,)
    slopes = [_slope(x, a, distance, edge_order)
              for a, distance in zip(axes, given if len(given) == len(axes) else given * len(axes), strict=True)]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _slope(x: Any, axis: int, spacing: Any, edge_order: int) -> Any:
    """The slopes along one axis."""
    n = x.shape[axis]
    if n < edge_order + 1:
        raise ValueError(f"gradient: needs at least {edge_order + 1} elements along axis {axis} of shape "
                         f"{tuple(x.shape)}, for edge_order {edge_order}")
    before, after = _slice(x, axis, None, -1), _slice(x, axis, 1, None)
    slopes, share = diff(x, axis=axis), 0.5  # share: of the way between two neighbours, how much is on the left
    if _is_several(spacing):
        distances = _distances(spacing, x, axis)
        slopes, share = slopes / distances, distances[before] / (distances[before] + distances[after])
    else:
        slopes = slopes / spacing
    bend = slopes[after] - slopes[before]
    head, tail = _slice(x, axis, None, 1), _slice(x, axis, -1, None)
    first, last = slopes[head], slopes[tail]
    if _is_several(spacing):
        inner = slopes[before] + share * bend
    else:  # without the element between the neighbours, which may be NaN or infinite
        inner = (x[_slice(x, axis, 2, None)] - x[_slice(x, axis, None, -2)]) / (2 * spacing)
    if edge_order == 2:  # the slope of the parabola through the three points at either end
        first, last = first - (share * bend)[head], last + ((1 - share) * bend)[tail]
    return concatenate([first, inner, last], axis)


def _is_several(spacing: Any) -> bool:
    """Whether it is one coordinate for each element, and no number."""
    return bool(spacing.shape if hasattr(spacing, "shape") else np.ndim(spacing))


def _distances(coordinates: Any, x: Any, axis: int) -> Any:
    """The distances of neighbours, along `axis` of x and of length 1 along the others."""
    if not isinstance(coordinates, TensorBase):
        coordinates = numbers_on(device_of(raw(x)), coordinates, x.dtype, "gradient")
        coordinates = wrap(coordinates) if isinstance(x, TensorBase) else coordinates
    if tuple(coordinates.shape) != (x.shape[axis],):
        raise ValueError(f"gradient: the coordinates along axis {axis} must have shape {(x.shape[axis],)}, got "
                         f"{tuple(coordinates.shape)}")
    return reshape(diff(coordinates), tuple(-1 if i == axis else 1 for i in range(len(x.shape))))
