"""NumPy's einsum with sums that keep their digits; see `minigrad.device.sums`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad.device.devices import xp
from minigrad.device.sums import LONG, sum_over

WORK = 2**13  # products in a part: enough to take many times as long as the call


def einsum(subscripts: str, *xs: Any) -> Any:
    """``np.einsum(subscripts, *xs)``, of letters, commas and ``->``, on the device of the operands.

    NumPy adds up the products one after the other if every operand has a letter of the output along its smallest
    stride. Many in float32 are added up in parts here, whose sums are added up in float64. float16 is added up in
    float32.
    """
    if type(xs[0]) is np.ndarray and xs[0].dtype.char == "e":
        return einsum(subscripts, *[x.astype(np.float32) for x in xs]).astype(np.float16)
    left, out = subscripts.split("->")
    terms = left.split(",")
    if any(type(x) is not np.ndarray or x.dtype.char != "f" or inner(t, x) not in out
           for t, x in zip(terms, xs, strict=True)):
        return xp(xs[0]).einsum(subscripts, *xs)
    sizes = {c: n for t, x in zip(terms, xs, strict=True) for c, n in zip(t, x.shape, strict=True)}
    summed = [c for c in sizes if c not in out]
    count, longest = math.prod([sizes[c] for c in summed]), max(summed, key=sizes.__getitem__, default="")
    if count <= LONG:
        return np.einsum(subscripts, *xs)
    if len(xs) == 1 and len(set(left)) == len(left):
        kept = [c for c in left if c in out]
        return sum_over(xs[0], tuple(left.index(c) for c in summed)).transpose([kept.index(c) for c in out])
    length, products = sizes[longest], math.prod(sizes.values())
    step = math.ceil(length * max(LONG / 2 / count, WORK / products))
    total: Any = 0.0
    for start in range(0, length, step):
        part = slice(start, start + step)
        parts = [x[tuple([part if c == longest else slice(None) for c in t])] for t, x in zip(terms, xs, strict=True)]
        total = np.add(total, np.einsum(subscripts, *parts), dtype=np.float64)
    return total.astype(np.float32)


def inner(letters: str, x: Any) -> str:
    """The letter of the axis of x with the smallest stride; "" if it is one element, broadcast."""
    strides = [(abs(stride), c) for stride, c, n in zip(x.strides, letters, x.shape, strict=True) if n > 1 and stride]
    return min(strides)[1] if strides else ""
