"""Drawing tokens at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import functional as F
from minigrad.arguments import number, whole_number
from minigrad.device import xp


def draw(log_probabilities: Any, uniform: Any, temperature: float = 1.0, top_k: int | None = None,
         top_p: float | None = None) -> Any:
    """One token for each row, by inverting the cumulative distribution at `uniform`.

    Args:
        log_probabilities: (rows, V), −inf for tokens that must not be drawn.
        uniform: numbers in [0, 1), (rows,).
        temperature: divides the logits. Below 1, it makes probable tokens more probable; near its limit 0, the first.
        top_k: draw from the k most probable tokens only.
        top_p: draw from the smallest set of most probable tokens that together have at least this probability (nucleus
            sampling, Holtzman et al. 2020), after `temperature` and `top_k`.

    Returns:
        Raw integers (rows,).

    Raises:
        ValueError: an option out of range.
    """
    number(temperature, "temperature", "generate", 1e-9, 1e9)
    if top_k is not None:
        whole_number(top_k, "top_k", "generate")
    if top_p is not None:
        number(top_p, "top_p", "generate", 0, 1)
    namespace = xp(log_probabilities)
    probabilities = F.softmax(log_probabilities.astype(np.float64) / temperature)
    order = None if top_k is None and top_p is None else namespace.argsort(-probabilities, axis=-1)
    if order is not None:
        probabilities = namespace.take_along_axis(probabilities, order, axis=-1)
    if top_k is not None:
        probabilities[:, top_k:] = 0.0
    if top_p is not None:
        before = probabilities.cumsum(axis=-1) - probabilities  # the total of the more probable tokens
        probabilities[before >= top_p * probabilities.sum(axis=-1, keepdims=True)] = 0.0
    cumulative = probabilities.cumsum(axis=-1)
    # The first token whose cumulative probability exceeds the threshold: it is never one of probability 0.
    place = (cumulative > uniform[:, None] * cumulative[:, -1:]).argmax(axis=-1)
    return place if order is None else namespace.take_along_axis(order, place[:, None], axis=-1)[:, 0]
