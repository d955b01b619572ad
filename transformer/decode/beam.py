"""Beam search: at each step the best few hypotheses of every sentence, all in one batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minigrad.device import xp

from transformer.decode.steps import Hypothesis, Steps, at_least_one, decoding, read_back
from transformer.model import Transformer

MAX_ALPHA = 10.0  # far beyond any use (the paper's are below 1), and safe from overflow
Score = Callable[[float, int], float]  # of a log-probability and a length in tokens, end-of-sentence included


def beam_search(model: Transformer, source: Any, beam_size: int, num_best: int = 1, max_length: int | None = None,
                length_penalty: str = "gnmt", alpha: float = 0.6) -> list[list[Hypothesis]]:
    """The best translations of each sentence that a beam finds.

    Each step takes the `beam_size` most probable extensions of the hypotheses that are open; those that end in
    end-of-sentence leave the beam. A sentence is done when nothing is open, or when no open hypothesis could still beat
    the `num_best` finished ones, however it went on. ``beam_size=1`` is greedy decoding.

    Args:
        model: in any mode; it decodes in evaluation mode.
        source: ids (B, S), each row ending in end-of-sentence, then padded.
        beam_size: K, how many hypotheses of a sentence are open at a time.
        num_best: how many translations to return for each sentence; at most `beam_size`.
        max_length: the most tokens of a translation, end-of-sentence included; by default twice the sentence's source
            tokens plus 10, but no more than the model's positions.
        length_penalty: how finished hypotheses are ranked, with |Y| counting end-of-sentence:
            "gnmt": ``log P / ((5 + |Y|) / 6)^α`` (Wu et al. 2016, arXiv:1609.08144, equation 14);
            "mean": ``log P / |Y|``; "none": ``log P``.
        alpha: α of "gnmt", from 0 to 10.

    Returns:
        For each row of `source` at most `num_best` different hypotheses, best first. Those cut off at `max_length` are
        returned only where fewer finished, after the finished ones.

    Raises:
        ValueError: a row without tokens; an argument out of range.
    """
    beam_size, num_best = at_least_one("beam_size", beam_size), at_least_one("num_best", num_best)
    if num_best > beam_size:
        raise ValueError(f"beam_search: a beam of {beam_size} cannot give the {num_best} best; raise beam_size, or "
                         "lower num_best")
    score = _score(length_penalty, alpha)
    with decoding(model):
        steps = Steps(model, source, max_length)
        beams = [_Beam(beam_size, num_best, limit, model.config.eos_id, score) for limit in steps.limits]
        while searching := [beam for beam in beams if beam.open]:
            tokens, log_probabilities = most_probable(steps.log_probabilities(), beam_size)
            rows: list[int] = []
            first = 0  # the row of the beam's first open hypothesis
            for beam in searching:
                end = first + len(beam.open)
                parents = beam.extend(tokens[first:end].tolist(), log_probabilities[first:end].tolist())
                rows += [first + parent for parent in parents]
                first = end
            steps.go_on(rows, [hypothesis.ids[-1] for beam in searching for hypothesis in beam.open])
    return [beam.best() for beam in beams]


def most_probable(log_probabilities: Any, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The most probable tokens of each row, best first, and their log-probabilities.

    Overwrites `log_probabilities`, a raw array (rows, V). For beams of the usual size, a pass of argmax for each token
    is faster than a partition; and of equally probable tokens the smaller id is certain to come first.

    Returns:
        Two host arrays (rows, min(count, V)); −inf marks tokens that are excluded.
    """
    namespace = xp(log_probabilities)
    tokens, values = [], []
    for _ in range(min(count, log_probabilities.shape[1])):
        token = log_probabilities.argmax(axis=-1)[:, None]  # (rows, 1)
        tokens.append(token)
        values.append(namespace.take_along_axis(log_probabilities, token, axis=-1))
        namespace.put_along_axis(log_probabilities, token, -math.inf, axis=-1)
    return read_back(namespace.concatenate(tokens, axis=-1), namespace.concatenate(values, axis=-1))


@dataclass(frozen=True)
class _Open:
    """A hypothesis that has not ended."""

    ids: list[int]
    log_probability: float


class _Beam:
    """The search for the translations of one sentence."""

    def __init__(self, size: int, num_best: int, limit: int, eos: int, score: Score) -> None:
        self.size, self.num_best, self.limit, self.eos, self.score = size, num_best, limit, eos, score
        self.open = [_Open([], 0.0)]
        self.length = 0
        self.finished: list[Hypothesis] = []  # best first
        self.cut_off: list[Hypothesis] = []

    def extend(self, tokens: list[list[int]], log_probabilities: list[list[float]]) -> list[int]:
        """Go one token further.

        Args:
            tokens, log_probabilities: for each open hypothesis the tokens that may follow, most probable first.

        Returns:
            Which hypothesis each one now open extends. None is open once the search is done.
        """
        candidates = [(hypothesis.log_probability + gained, parent, token)
                      for parent, hypothesis in enumerate(self.open)
                      for token, gained in zip(tokens[parent], log_probabilities[parent], strict=True)
                      if gained > -math.inf]
        candidates.sort(key=lambda candidate: -candidate[0])  # stable: equal ones stay in the order of parent and token
        self.length += 1
        before, self.open, parents = self.open, [], []
        for log_probability, parent, token in candidates[: self.size]:
            if token == self.eos:
                self.finished.append(self._hypothesis(before[parent].ids, log_probability, True))
            else:
                self.open.append(_Open([*before[parent].ids, token], log_probability))
                parents.append(parent)
        self.finished.sort(key=lambda hypothesis: -hypothesis.score)
        if self.length == self.limit:
            self.cut_off = [self._hypothesis(cut.ids, cut.log_probability, False) for cut in self.open]
        if self.length == self.limit or not self._can_improve():
            self.open = []
        return parents if self.open else []

    def _hypothesis(self, ids: list[int], log_probability: float, finished: bool) -> Hypothesis:
        return Hypothesis(ids, self.score(log_probability, self.length), log_probability, finished)

    def _can_improve(self) -> bool:
        """Whether an open hypothesis may still end up among the `num_best`.

        Its log-probability can only fall, but what that is divided by grows with its length. Log-probabilities are
        negative, so the best it can hope for is to lose nothing more and to be as long as is allowed.
        """
        if not self.open or len(self.finished) < self.num_best:
            return bool(self.open)
        hope = self.score(max(hypothesis.log_probability for hypothesis in self.open), self.limit)
        return hope > self.finished[self.num_best - 1].score

    def best(self) -> list[Hypothesis]:
        """The `num_best`: the finished ones by score, then, if they are too few, the most probable of those cut off."""
        return (self.finished + self.cut_off)[: self.num_best]


def _score(length_penalty: str, alpha: float) -> Score:
    """The function that hypotheses are ranked by."""
    if not 0 <= alpha <= MAX_ALPHA:  # nan, too
        raise ValueError(f"beam_search: alpha must be a number from 0 to {MAX_ALPHA:g}, got {alpha}")
    scores: dict[str, Score] = {
        "gnmt": lambda log_probability, length: log_probability / ((5 + length) / 6) ** alpha,
        "mean": lambda log_probability, length: log_probability / length,
        "none": lambda log_probability, length: log_probability,
    }
    if length_penalty not in scores:
        raise ValueError(f"beam_search: length_penalty must be one of {', '.join(scores)}, got {length_penalty!r}")
    return scores[length_penalty]
