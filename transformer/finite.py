"""Weights and results that are not finite: they become no checkpoint and no translation, but an error in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minigrad import Tensor, nn
from minigrad.device import on_device_of, to_numpy, xp


class NotFinite(FloatingPointError):
    """A model's weights, or what it computes from them, are not finite; the message is one line."""


def unwarned() -> np.errstate:
    """A block in which NumPy does not warn of overflow: what comes of it is found afterwards, and told in one line."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def first_not_finite(tensors: Mapping[str, Any]) -> str | None:
    """The name of the first of these tensors, or arrays, that holds a NaN or an infinity; None if all are finite.

    They are of one device. If it is a GPU, it is synchronised once. The sum of squares takes a third of the time of a
    look at each element; where it overflows, there is such a look.
    """
    arrays = {name: tensor.data if isinstance(tensor, Tensor) else tensor for name, tensor in tensors.items()}
    if not arrays:
        return None
    with on_device_of(next(iter(arrays.values()))), unwarned():
        flat = [array.ravel() for array in arrays.values()]
        squares = to_numpy(xp(flat[0]).stack([array @ array for array in flat]))
        return next((name for name, square in zip(arrays, squares, strict=True)
                     if not np.isfinite(square) and not xp(arrays[name]).isfinite(arrays[name]).all()), None)


def check_finite(tensors: Mapping[str, Any], what: str = "the parameter") -> None:
    """Raise NotFinite if one of these tensors, or arrays, is not finite; it is named as ``what name``."""
    name = first_not_finite(tensors)
    if name is not None:
        raise NotFinite(f"{what} {name} holds a NaN or an infinity")


def overflow(model: nn.Module, what: str) -> NotFinite:
    """The error for a model that computes what is not finite, with the cause: a parameter, or numbers too large."""
    name = first_not_finite(dict(model.named_parameters()))
    cause = "its weights are finite, but too large" if name is None else f"its parameter {name} is not"
    return NotFinite(f"the model gives no finite {what} ({cause})")
