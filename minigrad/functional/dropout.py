"""Dropout (Srivastava et al. 2014). The mask is drawn outside and passed in, so that it can be frozen and checked."""

from __future__ import annotations

from typing import Any

from minigrad import random
from minigrad.arguments import number
from minigrad.engine.primitive import primitive, public


@primitive(floating=True, composite=True, fresh=True)
def dropout_with_mask(input, mask, p):
    """``input / (1 - p)`` where the boolean `mask` is true, 0 elsewhere (of a finite input)."""
    return input * mask * (1 / (1 - checked(mask, p)))


dropout_with_mask.gradient(input=lambda g, mask, p: dropout_with_mask(g, mask, p))


def checked(mask: Any, p: Any) -> float:
    """p as a Python number; TypeError unless the mask is boolean and p a number, ValueError unless it is in [0, 1)."""
    if mask.dtype.kind != "b":
        raise TypeError(f"dropout_with_mask: the mask must be boolean, got dtype {mask.dtype}")
    return check_probability(p, "dropout_with_mask")


def check_probability(p: Any, operation: str) -> float:
    """p as a Python number; ValueError unless ``0 <= p < 1``, TypeError if it is no number."""
    if type(p) is not float:
        p = number(p, "the probability of dropping", operation)
    if not 0 <= p < 1:
        raise ValueError(f"{operation}: the probability of dropping must be in [0, 1), got {p}")
    return p


@public
def dropout(input: Any, p: float = 0.5, training: bool = True) -> Any:
    """Zero each element with probability p and scale the rest by ``1 / (1 - p)``; the identity unless `training`.

    Args:
        input: a tensor of any shape.
        p: the probability of zeroing an element, in [0, 1).
    """
    p = check_probability(p, "dropout")
    if not training or p == 0:
        return input
    return dropout_with_mask(input, random.bernoulli_mask(random.next_key(), input.shape, 1 - p, input.device), p)
