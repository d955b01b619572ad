"""Whether numbers are equal but for rounding."""

from __future__ import annotations

from typing import Any

from minigrad.arguments import public
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.reduction import all


@primitive(broadcasts=True)
def isclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether ``|x - y| <= atol + rtol · |y|``, broadcasting: y is what x should be. Has no gradient.

    An infinity is close to itself alone, NaN to nothing, but with `equal_nan` to NaN.
    """
    return xp(x if hasattr(x, "dtype") else y).isclose(x, y, rtol, atol, equal_nan)


isclose.no_gradient()


@public
def allclose(x: Any, y: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether x and y are close everywhere, as a Python bool, for which it waits for a GPU.

    `rtol`, `atol` and `equal_nan` are those of `isclose`.
    """
    return bool(all(isclose(x, y, rtol, atol, equal_nan)))
