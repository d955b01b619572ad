"""Padding by PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad import ops
from minigrad.arguments import public, whole_number
from minigrad.tensor import as_tensor


@public
def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """The input with more elements around its last axes, as in PyTorch. (`minigrad.pad` has NumPy's arguments.)

    Args:
        input: any shape.
        pad: (before, after) of the last axis, then those of the last but one, and so on; negative ones cut off,
            before anything is repeated; but ``"reflect"`` reflects what is cut off at the other side, too.
        mode: ``"constant"``, ``"reflect"``, ``"replicate"``, ``"circular"``, or another of `minigrad.pad`.
        value: what ``"constant"`` puts there; None is 0.

    Raises:
        ValueError: an odd number of widths, or more than the axes have; and as `minigrad.pad`.
    """
    input = as_tensor(input)
    widths = [whole_number(n, "a width", "pad", least=None) for n in pad]
    if len(widths) % 2 or len(widths) > 2 * input.ndim:
        raise ValueError(f"pad: needs a pair of widths for each of the last axes, of {input.ndim}, got {tuple(pad)}; "
                         "minigrad.pad takes a pair for every axis, the first axis first")
    pairs = list(zip(widths[::2], widths[1::2], strict=True))[::-1]
    pairs = [(0, 0)] * (input.ndim - len(pairs)) + pairs
    added = [(max(0, before), max(0, after)) for before, after in pairs]
    value = 0 if value is None else value
    if mode == "reflect":
        return _cut(ops.pad(input, added, mode), pairs, pad)
    return ops.pad(_cut(input, pairs, pad), added, mode, value)


def _cut(x: Any, pairs: Sequence[tuple[int, int]], widths: Sequence[int]) -> Any:
    """x without what the negative widths of each axis cut off."""
    for (before, after), n in zip(pairs, x.shape, strict=True):
        if n + min(before, 0) + min(after, 0) < 0:
            raise ValueError(f"pad: {tuple(widths)} cuts off more than there is, of shape {x.shape}")
    kept = tuple(slice(max(0, -before), n + min(after, 0)) for (before, after), n in zip(pairs, x.shape, strict=True))
    return x[kept] if min(widths, default=0) < 0 else x
