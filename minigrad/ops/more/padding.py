"""Putting something around a tensor: a number, or what the tensor itself has near its border."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.arguments import public, whole_number
from minigrad.device import is_array, xp
from minigrad.engine.operands import numeric
from minigrad.engine.primitive import primitive
from minigrad.ops.indexing import take
from minigrad.ops.shape import require_arrays

# NumPy's modes, and PyTorch's names for two of them
MODES: dict[str, Any] = {"constant": "constant", "edge": "edge", "reflect": "reflect", "symmetric": "symmetric",
                         "wrap": "wrap", "replicate": "edge", "circular": "wrap"}


@primitive
def pad_constant(x, widths, value=0):
    """x with `value` put around it."""
    numeric(value if is_array(value) else np.asarray(value), "pad")
    return xp(x).pad(x, widths, mode="constant", constant_values=value)


pad_constant.gradient(x=lambda g, x_shape, widths:
                      g[tuple(slice(before, before + n) for (before, _), n in zip(widths, x_shape, strict=True))])


@public
def pad(x: Any, widths: Any, mode: str = "constant", value: float = 0) -> Any:
    """x with more elements around it, as in NumPy.

    What the modes make of ``a b c``, two before and two after:

    - ``"constant"``: ``v v a b c v v``, with v = `value`
    - ``"edge"``, ``"replicate"``: ``a a a b c c c``
    - ``"reflect"``: ``c b a b c b a``, without a repeat of the border
    - ``"symmetric"``: ``b a a b c c b``
    - ``"wrap"``, ``"circular"``: ``b c a b c a b``

    An element that stands in several places gets the sum of their gradients.

    Args:
        widths: a pair (before, after) for each axis, or an int for both. One for all axes need not be repeated: an int,
            ``(n,)``, ``(before, after)`` or ``((before, after),)``.

    Raises:
        ValueError: widths that do not fit or are negative, an unknown mode, an empty axis where the mode is not
            "constant".
        TypeError: widths that are no integers.
    """
    require_arrays("pad", x)
    pairs = _pairs(widths, len(x.shape))
    if mode not in MODES:
        raise ValueError(f"pad: mode must be one of {', '.join(map(repr, MODES))}, got {mode!r}; a number to put "
                         "there is value=")
    if mode == "constant" and pairs:
        return pad_constant(x, pairs, value)
    for axis, pair in enumerate(pairs):
        if pair != (0, 0):
            x = take(x, np.pad(np.arange(x.shape[axis]), pair, MODES[mode]), axis)
    return x if any(map(any, pairs)) else x * 1


def _pairs(widths: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    """A pair (before, after) for each axis."""
    try:
        pairs: Any = np.broadcast_to(np.asarray(widths, dtype=object), (ndim, 2)) if ndim else ()
    except ValueError:
        raise ValueError(f"pad: widths must have a pair (before, after) for each of the {ndim} axes, got "
                         f"{widths}") from None
    return tuple([(whole_number(before, "a width", "pad", least=0), whole_number(after, "a width", "pad", least=0))
                  for before, after in pairs])
