"""What the operators ``& | ~`` do: on booleans logic, on integers the same for each bit. They have no gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.engine.errors import shown
from minigrad.engine.primitive import primitive


def _require_bits(operation: str, *operands: Any) -> None:
    """TypeError for floats."""
    for x in operands:
        if getattr(x, "dtype", np.dtype(type(x))).kind == "f":
            raise TypeError(f"{operation}: the operands must be boolean or integer, got {shown(x)}; "
                            f"minigrad.ops.{operation.replace('bitwise', 'logical')} asks what is not 0")


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


@primitive(fresh=True)
def bitwise_not(x):
    """``~x``."""
    _require_bits("bitwise_not", x)
    return ~x


for _operation in (bitwise_and, bitwise_or, bitwise_not):
    _operation.no_gradient()
