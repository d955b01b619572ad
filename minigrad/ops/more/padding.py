"""Putting a number around a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.arguments import public, whole_number
from minigrad.device import is_array, xp
from minigrad.engine.operands import numeric
from minigrad.engine.primitive import primitive
from minigrad.ops.shape import require_arrays


@primitive
def pad_constant(x, widths, value=0):
    """x with `value` put around it."""
    numeric(value if is_array(value) else np.asarray(value), "pad")
    return xp(x).pad(x, widths, mode="constant", constant_values=value)


pad_constant.gradient(x=lambda g, x_shape, widths:
                      g[tuple(slice(before, before + n) for (before, _), n in zip(widths, x_shape, strict=True))])


@public
def pad(x: Any, widths: Any, value: float = 0) -> Any:
    """x with `value` put around it, as NumPy's pad does in the mode "constant".

    Args:
        widths: a pair (before, after) for each axis, or an int for both. One for all axes need not be repeated: an int,
            ``(n,)``, ``(before, after)`` or ``((before, after),)``.

    Raises:
        ValueError: widths that do not fit or are negative.
        TypeError: widths that are no integers.
    """
    require_arrays("pad", x)
    pairs = _pairs(widths, len(x.shape))
    return pad_constant(x, pairs, value) if pairs else x * 1


def _pairs(widths: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    """A pair (before, after) for each axis."""
    try:
        pairs: Any = np.broadcast_to(np.asarray(widths, dtype=object), (ndim, 2)) if ndim else ()
    except ValueError:
        raise ValueError(f"pad: widths must have a pair (before, after) for each of the {ndim} axes, got "
                         f"{widths}") from None
    return tuple([(whole_number(before, "a width", "pad", least=0), whole_number(after, "a width", "pad", least=0))
                  for before, after in pairs])
