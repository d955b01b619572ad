"""Weights and results that are not finite: they become no checkpoint and no translation, but an error in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minigrad import Tensor, nn
from minigrad.device import on_device_of, xp


class NotFinite(FloatingPointError):
    """A model's weights, or what it computes from them, are not finite; the message is one line."""


def unwarned() -> np.errstate:
    """A block in which NumPy does not warn of overflow: what comes of it is found afterwards, and told in one line."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def first_not_finite(tensors: Mapping[str, Any]) -> str | None:
    """The name of the first of these tensors, or arrays, that holds a NaN or an infinity; None if all are finite."""
    for name, tensor in tensors.items():
        array = tensor.data if isinstance(tensor, Tensor) else tensor
        with on_device_of(array):
            if not xp(array).isfinite(array).all():
                return name
    return None


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
