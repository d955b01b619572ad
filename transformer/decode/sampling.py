"""Drawing tokens at random."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minigrad import functional as F
from minigrad.arguments import whole_number
from minigrad.device import asarray_on, device_of, xp

from transformer.decode.beam import Choices, Choose
from transformer.decode.steps import Steps


def drawing(uniform: NDArray[np.float64], temperature: float = 1.0, top_k: int | None = None,
            top_p: float | None = None) -> Choose:
    """The choice of sampling, with a single hypothesis of each text.

    Args:
        uniform: random numbers in [0, 1), for each text and step, (texts, steps).
        temperature, top_k, top_p: as for `draw`.

    Raises:
        ValueError, TypeError: an option with which one cannot draw.
    """
    if not (temperature > 0 and math.isfinite(temperature)):
        raise ValueError(f"generate: temperature must be positive and finite, got {temperature}; for 0, its limit, "
                         "use greedy decoding")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"generate: top_p must be in (0, 1], got {top_p}")
    if top_k is not None:
        whole_number(top_k, "top_k", "generate")

    def choose(steps: Steps, texts: NDArray[np.int64]) -> Choices:
        log_probabilities = steps.log_probabilities()
        numbers = asarray_on(device_of(log_probabilities), uniform[texts, steps.said.shape[2]])
        chosen = draw(log_probabilities, numbers, temperature, top_k, top_p)[:, None]
        return steps.on_host(chosen, xp(chosen).take_along_axis(log_probabilities, chosen, axis=-1))

    return choose


def draw(log_probabilities: Any, uniform: Any, temperature: float = 1.0, top_k: int | None = None,
         top_p: float | None = None) -> Any:
    """One token for each row, by inverting the cumulative distribution at `uniform`.

    Args:
        log_probabilities: (rows, V), −inf for tokens that must not be drawn.
        uniform: numbers in [0, 1), (rows,).
        temperature: positive; divides the logits. Below 1, it makes probable tokens more probable.
        top_k: draw from the k most probable tokens only.
        top_p: draw from the smallest set of most probable tokens that together have at least this probability (nucleus
            sampling, Holtzman et al. 2020), after `temperature` and `top_k`. In (0, 1].

    Returns:
        Raw integers (rows,).
    """
    namespace = xp(log_probabilities)
    probabilities = F.softmax(log_probabilities.astype(np.float64) / temperature)
    order = None
    if top_k is not None or top_p is not None:
        order = namespace.argsort(-probabilities, axis=-1)
        probabilities = namespace.take_along_axis(probabilities, order, axis=-1)
    if top_k is not None:
        probabilities[:, top_k:] = 0.0
    if top_p is not None:
        before = probabilities.cumsum(axis=-1) - probabilities  # the total of the more probable tokens
        total = probabilities.sum(axis=-1, keepdims=True)
        probabilities = namespace.where(before < top_p * total, probabilities, 0.0)
    cumulative = probabilities.cumsum(axis=-1)
    threshold = uniform[:, None] * cumulative[:, -1:]
    # The first token whose cumulative probability exceeds the threshold: it is never one of probability 0.
    place = (cumulative > threshold).argmax(axis=-1)
    return place if order is None else namespace.take_along_axis(order, place[:, None], axis=-1)[:, 0]
