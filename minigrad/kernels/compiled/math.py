"""eˣ and the greatest element of a row, written so that the compiler can work on several elements at once.

It cannot do so with a call of the C library's ``expf``, nor with the maximum of floats, whose NaN is special.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import overload

from minigrad.kernels.compiled.kernel import helper

# Only products and sums may be contracted here: the other liberties would remove the rounding by SHIFTER.
EXACT: Any = {"fastmath": {"contract"}, "error_model": "numpy"}

LOG2_E = 1 / math.log(2)
# log 2 = HIGH + LOW, and HIGH has so few digits that k · HIGH is exact for all exponents k.
HIGH_32 = 355 / 512
LOW_32 = math.log(2) - HIGH_32
HIGH_64 = math.floor(math.log(2) * 2**32) / 2**32
LOW_64 = (math.log(2) - HIGH_64) + 2.3190468138462996e-17  # the last term: what the float64 `math.log(2)` lacks
# Added to a number it leaves no room for a fraction: the sum is the nearest integer, in its lowest bits.
SHIFTER_32, SHIFTER_64 = 1.5 * 2**23, 1.5 * 2**52
SHIFTER_BITS_32 = int(np.float32(SHIFTER_32).view(np.int32))
SHIFTER_BITS_64 = int(np.float64(SHIFTER_64).view(np.int64))


def exp(x: Any) -> Any:
    """``eˣ`` of a float32 or float64, within an ulp; for kernels.

    With k the integer nearest to x / log 2 and r = x - k log 2:  eˣ = 2ᵏ eʳ, |r| ≤ log(2)/2, and eʳ is the beginning of
    its Taylor series. 2ᵏ is put together from the bits of k, in two factors: a result may be smaller than the smallest
    normal number, or k too large by one.
    """
    raise NotImplementedError("for compiled kernels only: use numpy.exp")


def exp_float32(x):
    vanishes = x < np.float32(-104)  # to 0, without the slow multiplications of numbers near the smallest
    x = np.float32(0) if vanishes else x
    x = np.float32(89) if x > np.float32(89) else x  # infinity from here on; NaN stays
    shifted = x * np.float32(LOG2_E) + np.float32(SHIFTER_32)
    k = np.int32(np.float32(shifted).view(np.int32) - np.int32(SHIFTER_BITS_32))
    whole = shifted - np.float32(SHIFTER_32)
    r = (x - whole * np.float32(HIGH_32)) - whole * np.float32(LOW_32)
    y = np.float32(1 / 5040) * r + np.float32(1 / 720)
    y = y * r + np.float32(1 / 120)
    y = y * r + np.float32(1 / 24)
    y = y * r + np.float32(1 / 6)
    y = y * r + np.float32(1 / 2)
    y = y * r + np.float32(1)
    y = y * r + np.float32(1)
    half = np.int32(k >> np.int32(1))
    first = np.int32((half + np.int32(127)) << np.int32(23)).view(np.float32)
    second = np.int32((k - half + np.int32(127)) << np.int32(23)).view(np.float32)
    return np.float32(0) if vanishes else y * first * second


def exp_float64(x):
    vanishes = x < -746.0
    x = 0.0 if vanishes else x
    x = 710.0 if x > 710.0 else x
    shifted = x * LOG2_E + SHIFTER_64
    k = np.float64(shifted).view(np.int64) - SHIFTER_BITS_64
    whole = shifted - SHIFTER_64
    r = (x - whole * HIGH_64) - whole * LOW_64
    y = 1 / 6227020800 * r + 1 / 479001600
    y = y * r + 1 / 39916800
    y = y * r + 1 / 3628800
    y = y * r + 1 / 362880
    y = y * r + 1 / 40320
    y = y * r + 1 / 5040
    y = y * r + 1 / 720
    y = y * r + 1 / 120
    y = y * r + 1 / 24
    y = y * r + 1 / 6
    y = y * r + 1 / 2
    y = y * r + 1.0
    y = y * r + 1.0
    half = k >> 1
    first = np.int64((half + 1023) << 52).view(np.float64)
    second = np.int64((k - half + 1023) << 52).view(np.float64)
    return 0.0 if vanishes else y * first * second


@overload(exp, jit_options=EXACT)
def exp_of(x):
    """The body for the type of x."""
    return exp_float32 if x is types.float32 else exp_float64


@numba.njit(error_model="numpy", fastmath=False)  # left out, it would be that of the kernel that calls
def minus(x, y):
    """``x - y``, rounded: neither reordered with what comes before or after, nor contracted with a product.

    For differences of large numbers that are near each other: ``(x - shift) - y`` would be ``x - (shift + y)`` else.
    """
    return x - y


def greatest(row: Any) -> Any:
    """The greatest element of a float32 or float64 vector, -inf of an empty one; if there is a NaN, it may be NaN.

    Positive floats are in the order of their bits read as integers, negative ones in the reverse order; integers have
    no NaN, and their maximum can be taken in any order.
    """
    raise NotImplementedError("for compiled kernels only: use numpy.max")


def greatest_float32(row):
    top = np.int32(-0x7F800001)  # of -inf
    for j in range(row.size):
        bits = np.float32(row[j]).view(np.int32)
        key = np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))
        top = key if key > top else top
    return np.int32(top ^ ((top >> np.int32(31)) & np.int32(0x7FFFFFFF))).view(np.float32)


def greatest_float64(row):
    top = np.int64(-0x7FF0000000000001)
    for j in range(row.size):
        bits = np.float64(row[j]).view(np.int64)
        key = bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
        top = key if key > top else top
    return np.int64(top ^ ((top >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))).view(np.float64)


@overload(greatest, jit_options=EXACT)
def greatest_of(row):
    """The body for the element type of the row."""
    return greatest_float32 if row.dtype is types.float32 else greatest_float64


@helper
def total_and_shift(row):
    """``(Σ e^(x - shift), shift)`` of a row, shift = its greatest element; 0 if that is -inf."""
    top = greatest(row)
    shift = row.dtype.type(0) if top == -np.inf else top
    total = row.dtype.type(0)
    for j in range(row.size):
        total += exp(minus(row[j], shift))
    return total, shift
