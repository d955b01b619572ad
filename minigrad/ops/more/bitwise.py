"""What the operators ``& | ^ ~`` do, on booleans logic and on integers the same for each bit; and shifts, ``<< >>``.

They have no gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.engine.errors import shown
from minigrad.engine.primitive import primitive


def _require_bits(operation: str, *operands: Any) -> None:
    """TypeError for floats."""
    for x in operands:
        if getattr(x, "dtype", np.dtype(type(x))).kind == "f":
            instead = (f"minigrad.ops.{operation.replace('bitwise', 'logical')} asks what is not 0"
                       if operation.startswith("bitwise") else "x * 2.0**n moves the bits of floats")
            raise TypeError(f"{operation}: the operands must be boolean or integer, got {shown(x)}; {instead}")


@primitive(broadcasts=True)
def bitwise_and(x, y):
    """``x & y``, broadcasting."""
    _require_bits("bitwise_and", x, y)
    return x & y


@primitive(broadcasts=True)
def bitwise_or(x, y):
    """``x | y``, broadcasting."""
    _require_bits("bitwise_or", x, y)
    return x | y


@primitive(broadcasts=True)
def bitwise_xor(x, y):
    """``x ^ y``, broadcasting."""
    _require_bits("bitwise_xor", x, y)
    return x ^ y


@primitive(fresh=True)
def bitwise_not(x):
    """``~x``."""
    _require_bits("bitwise_not", x)
    return ~x


@primitive(broadcasts=True)
def left_shift(x, y):
    """``x << y``: the bits of x moved up by y places, broadcasting; ``x · 2ʸ`` where it does not overflow."""
    _require_bits("left_shift", x, y)
    return x << y


@primitive(broadcasts=True)
def right_shift(x, y):
    """``x >> y``: the bits of x moved down by y places, broadcasting; the floor of ``x / 2ʸ``."""
    _require_bits("right_shift", x, y)
    return x >> y


@primitive(broadcasts=True)
def logical_xor(x, y):
    """Whether exactly one is true: what is not 0 is, NaN too."""
    if x is None or y is None:
        raise TypeError("None is no operand; give tensors, arrays or numbers")
    return (x != 0) ^ (y != 0)


for _operation in (bitwise_and, bitwise_or, bitwise_xor, bitwise_not, left_shift, right_shift, logical_xor):
    _operation.no_gradient()
