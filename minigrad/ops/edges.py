"""What a rule does with a gradient of exactly 0 where the slope is infinite or not a number.

``where(x > 0, log(x), 0)`` sends a gradient of 0 to the logarithms of what is not positive, and ``0 · ∞`` would make it
NaN. **By convention a gradient of exactly 0 stays 0**: at a pole (``1/x`` at 0), where a slope is infinite (``sqrt`` at
0), and outside the domain (``log`` at -1); to every order, as a constant stands for x there.

A rule sees the gradient, not where it comes from. That of the root in ``sqrt(x)**2`` at 0 is 0 as well, and so is the
result, though the derivative is 1: as a limit, 0 · ∞ may be any number. No rule can tell the two apart; where a factor
vanishes as fast as the slope grows, write the function without them. docs/gradients/elementwise.md has a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.ops.comparison import isfinite
from minigrad.ops.selection import where


def off_the_edge(g: Any, x: Any, regular: Any, instead: float = 1.0) -> Any:
    """x, but the constant `instead` where g is exactly 0 and x is not `regular`, so that the slope there is finite."""
    if has_no_zeros(regular):  # the usual case
        return x
    return where((g != 0) | regular, x, instead)


def has_no_zeros(x: Any) -> bool:
    """Whether x is True, or an array in host memory without a 0 or a False.

    It is not checked on a GPU, where the check would synchronise, nor of a tensor.
    """
    return x is True or (isinstance(x, (np.ndarray, np.generic)) and np.count_nonzero(x) == x.size)


def finite(g: Any, x: Any) -> Any:
    """x, but 0 where g is exactly 0 and x is infinite or NaN: for a factor of the slope."""
    return off_the_edge(g, x, isfinite(x), 0.0)
