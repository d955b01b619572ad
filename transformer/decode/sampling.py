"""Greedy decoding and drawing at random: each row is one hypothesis, and each step adds one token to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minigrad import functional as F
from minigrad.arguments import whole_number
from minigrad.device import asarray_on, device_of, xp

from transformer.decode.controls import Controls, nothing_left
from transformer.decode.steps import (
    Hypothesis,
    Steps,
    decoding,
    in_parts,
    read_back,
    remaining,
    translation,
)
from transformer.model import Transformer

# (steps, numbers of the open hypotheses) -> the next token of each and its log-probability, host arrays (rows,).
Choice = Callable[[Steps, NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.float64]]]


def greedy(model: Transformer, source: Any, max_length: int | None = None, prefix: Any = (), **controls: Any
           ) -> list[Hypothesis]:
    """Greedy decoding: the most probable token at each step.

    Args:
        model: in any mode; it decodes in evaluation mode. Within `minigrad.parallel.threads`, threads divide the batch.
        source: ids (B, S), each row ending in end-of-sentence, then padded.
        max_length: the most tokens of a translation, end-of-sentence included; by default twice the sentence's source
            tokens plus 10, but no more than the model's positions.
        prefix: target ids that every translation begins with; or a list of them, with one for each row.
        controls: the options of `Controls`, by name.

    Returns:
        One hypothesis for each row, whose `ids` begin with the prefix; its score is its log-probability.

    Raises:
        ValueError: a row without tokens; `max_length` less than 1 or more than the model's positions; an option out of
            range; another number of prefixes.
        IndexError: an id outside the vocabulary.
        NotFinite: the model gives no finite probabilities.
    """
    options = Controls(**controls)
    with decoding(model):
        return in_parts(lambda part, prefix: completed(translation(model, part, max_length, prefix, options),
                                                       most_probable_token), model, source, prefix)


def check_options(caller: str, temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Raise TypeError or ValueError, in the name of `caller`, unless one can sample with these options."""
    if not (temperature > 0 and math.isfinite(temperature)):
        raise ValueError(f"{caller}: temperature must be positive and finite, got {temperature}; for 0, its limit, "
                         "use greedy decoding")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"{caller}: top_p must be in (0, 1], got {top_p}")
    if top_k is not None:
        whole_number(top_k, "top_k", caller)


def most_probable_token(steps: Steps, _: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The choice of greedy decoding."""
    tokens, log_probabilities = steps.most_probable(1)
    return tokens[:, 0, 0], log_probabilities[:, 0, 0]


def drawing(uniform: Callable[[int, NDArray[np.int64]], NDArray[np.float64]], temperature: float, top_k: int | None,
            top_p: float | None) -> Choice:
    """The choice of sampling.

    Args:
        uniform: (number of the step, numbers of the open hypotheses) -> their random numbers in [0, 1), (rows,).
        temperature, top_k, top_p: as for `draw`.
    """

    def choose(steps: Steps, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        log_probabilities = steps.log_probabilities()
        numbers = asarray_on(device_of(log_probabilities), uniform(steps.length, rows))
        chosen = draw(log_probabilities, numbers, temperature, top_k, top_p)[:, None]
        tokens, gained = read_back(chosen, xp(chosen).take_along_axis(log_probabilities, chosen, axis=-1))
        steps.check(gained)
        return tokens[:, 0], gained[:, 0]

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


def follow(steps: Steps, choose: Choice) -> Iterator[tuple[NDArray[Any], ...]]:
    """Extend every row by the tokens that `choose` returns, until each ends or reaches its limit.

    Yields:
        For each step the numbers of the rows that were open, their new tokens, and the log-probabilities of these.
    """
    limits = np.array(steps.limits, np.int64)
    rows = np.arange(len(limits))
    while rows.size:
        tokens, gained = choose(steps, rows)
        if (gained == -math.inf).any():
            raise nothing_left()
        yield rows, tokens, gained
        stay = (tokens != steps.end) & (steps.length + 1 < limits[rows])
        if not stay.all():
            order = remaining(stay)
            rows, tokens = rows[order], tokens[order]
            steps.keep(order)
        steps.go_on(tokens[:, None])


def completed(steps: Steps, choose: Choice) -> list[Hypothesis]:
    """The hypothesis of each row, when all have ended or reached their limits."""
    count = len(steps.limits)
    ids: list[list[int]] = [[] for _ in range(count)]
    totals, finished = np.zeros(count), np.zeros(count, bool)
    for rows, tokens, gained in follow(steps, choose):
        totals[rows] += gained
        finished[rows] = ended = tokens == steps.end
        for row, token in zip(rows[~ended].tolist(), tokens[~ended].tolist(), strict=True):
            ids[row].append(token)
    return [Hypothesis(*parts) for parts in zip(ids, totals.tolist(), totals.tolist(), finished.tolist(), strict=True)]
