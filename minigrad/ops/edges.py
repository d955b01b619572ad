"""What a rule does with a gradient of exactly 0 where the slope is infinite or not a number.

``where(x > 0, log(x), 0)`` sends a gradient of 0 to the logarithm of what is not positive, and ``0 · ∞`` would make it
NaN. **By convention a gradient of exactly 0 stays 0**, at a pole (``1/x`` at 0), where a slope is infinite (``sqrt`` at
0) and outside the domain (``log`` at -1): to every order, since what stands for x there is a constant.

Its price: a rule sees its own gradient, not where it comes from. In ``sqrt(x)**2`` at 0 the gradient of the root is 0
too, and 0 is the result, where the mathematical derivative is 1 (0 · ∞ as a limit may be any number; a rule that
answered NaN would be right here and break every guarded function). Write ``x`` for ``sqrt(x)**2``.
"""

from __future__ import annotations

from typing import Any

from minigrad.ops.comparison import isfinite
from minigrad.ops.selection import where


def off_the_edge(g: Any, x: Any, regular: Any, instead: float = 1.0) -> Any:
    """x, but the constant `instead` where g is exactly 0 and x is not `regular`, so that the slope there is finite."""
    return where((g != 0) | regular, x, instead)


def times_slope(g: Any, slope: Any) -> Any:
    """``g · slope``, but 0 where g is exactly 0, though the slope be infinite or NaN."""
    return g * off_the_edge(g, slope, isfinite(slope), 0.0)
