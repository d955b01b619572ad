"""Padding by PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad import ops
from minigrad.arguments import public, whole_number
from minigrad.tensor import as_tensor


@public
def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """The input with more elements around its last axes, as in PyTorch. (`minigrad.pad` has NumPy's arguments.)

    Args:
        input: any shape.
        pad: (before, after) of the last axis, then those of the last but one, and so on; negative ones cut off.
        mode: ``"constant"``, ``"reflect"``, ``"replicate"``, ``"circular"``, or another of `minigrad.pad`. What is cut
            off comes back where the rest is reflected, but not where it goes around.
        value: what ``"constant"`` puts there; None is 0.

    Raises:
        ValueError: an odd number of widths, or more than the axes have; and as `minigrad.pad`.
        TypeError: widths that are no integers, or do not stand in a row, as pairs do not.
    """
    input = as_tensor(input)
    if np.ndim(pad) != 1:
        raise TypeError(f"pad: the widths stand in a row, (before, after) of the last axis first, got {pad}; "
                        "minigrad.pad takes an int, or a pair for every axis, the first axis first")
    widths = [whole_number(n, "a width", "pad", least=None) for n in pad]
    if len(widths) % 2 or len(widths) > 2 * input.ndim:
        raise ValueError(f"pad: needs a pair of widths for each of the last axes, of {input.ndim}, got {tuple(pad)}; "
                         "minigrad.pad takes a pair for every axis, the first axis first")
    pairs = list(zip(widths[::2], widths[1::2], strict=True))[::-1]
    pairs = [(0, 0)] * (input.ndim - len(pairs)) + pairs
    if any(n + min(before, 0) + min(after, 0) < 0 for (before, after), n in zip(pairs, input.shape, strict=True)):
        raise ValueError(f"pad: {tuple(pad)} cuts off more than there is, of shape {input.shape}")
    added = [(max(0, before), max(0, after)) for before, after in pairs]
    value = 0 if value is None else value
    if mode in ("circular", "wrap"):
        return ops.pad(_cut(input, pairs), added, mode, value)
    return _cut(ops.pad(input, added, mode, value), pairs)


def _cut(x: Any, pairs: list[tuple[int, int]]) -> Any:
    """x without what the negative widths name."""
    if all(width >= 0 for pair in pairs for width in pair):
        return x
    return x[tuple([slice(max(0, -before), n + min(after, 0)) for (before, after), n in zip(pairs, x.shape,
                                                                                            strict=True)])]
