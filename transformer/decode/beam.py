"""Beam search: at each step the best few hypotheses of every sentence, all in one batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minigrad.arguments import whole_number

from transformer.decode.controls import Controls, nothing_left
from transformer.decode.steps import Hypothesis, Steps, decoding, in_parts, remaining, translation
from transformer.model import Transformer

MAX_ALPHA = 10.0  # far beyond any use (the paper's are below 1), and safe from overflow
# (log-probability, length in tokens with end-of-sentence) -> score; for numbers or for arrays.
Score = Callable[[Any, Any], Any]


def beam_search(model: Transformer, source: Any, beam_size: int, num_best: int = 1, max_length: int | None = None,
                alpha: float = 0.6, prefix: Any = (), **controls: Any) -> list[list[Hypothesis]]:
    """The best translations of each sentence, found by beam search.

    Each step takes the `beam_size` most probable extensions of the open hypotheses; those that end in end-of-sentence
    leave the beam. A sentence is done when no hypothesis is open, or when no continuation of an open one could beat the
    `num_best` finished ones. ``beam_size=1`` is greedy decoding.

    Args:
        model: in any mode; it decodes in evaluation mode. Within `minigrad.parallel.threads`, threads divide the batch.
        source: ids (B, S), each row ending in end-of-sentence, then padded.
        beam_size: K, the most hypotheses of a sentence that are open at a time.
        num_best: the number of translations to return for each sentence, at most `beam_size`.
        max_length: the most tokens of a translation, end-of-sentence included; by default twice the sentence's source
            tokens plus 10, but no more than the model's positions.
        alpha: α, from 0 to 10, of the score of a finished hypothesis of ``|Y|`` tokens, end-of-sentence included:
            ``log P / ((5 + ``|Y|``) / 6)^α`` (Wu et al. 2016, arXiv:1609.08144, equation 14).
        prefix, controls: as for `greedy`; P is the probability of the whole translation, prefix included.

    Returns:
        For each row of `source` at most `num_best` different hypotheses, best first. Hypotheses cut off at `max_length`
        follow the finished ones, where fewer than `num_best` finished.

    Raises:
        ValueError: a row without tokens; an argument out of range.
        NotFinite: the model gives no finite probabilities.
    """
    beam_size = whole_number(beam_size, "beam_size", "beam_search")
    num_best = whole_number(num_best, "num_best", "beam_search")
    if num_best > beam_size:
        raise ValueError(f"beam_search: a beam of {beam_size} cannot give the {num_best} best; raise beam_size, or "
                         "lower num_best")
    score, options = scoring(alpha, "beam_search"), Controls(**controls)
    with decoding(model):
        return in_parts(lambda part, prefix: search(translation(model, part, max_length, prefix, options), beam_size,
                                                    num_best, score), model, source, prefix)


def search(steps: Steps, beam_size: int, num_best: int, score: Score) -> list[list[Hypothesis]]:
    """The `num_best` hypotheses of each text of `steps`, best first, by a beam of `beam_size`."""
    beams = _Beams(beam_size, num_best, steps.limits, steps.end, score)
    while beams.sentences.size:
        parents, stay = beams.extend(*steps.most_probable(beam_size))
        if not stay.all():
            order = remaining(stay)
            beams.keep(order)
            steps.keep(order)
            parents = parents[order]
        steps.go_on(beams.ids[:, :, -1], parents)
    return beams.best()


class _Beams:
    """The beams of the sentences of a batch, one for each sentence that is not done.

    Attributes:
        sentences: the number of the sentence in each row of the other arrays, (B,).
        ids: the tokens of its open hypotheses, (B, K, length).
        log_probabilities: of these hypotheses, most probable first, (B, K). −inf fills up rows with fewer than K.
    """

    def __init__(self, size: int, num_best: int, limits: list[int], eos: int, score: Score) -> None:
        self.size, self.num_best, self.eos, self.score = size, num_best, eos, score
        self.sentences = np.arange(len(limits))
        self.limits = np.array(limits, np.int64)
        self.ids = np.empty((len(limits), 1, 0), np.int64)
        self.log_probabilities = np.zeros((len(limits), 1))
        self.to_beat = np.full(len(limits), -math.inf)  # the worst score of `num_best` finished hypotheses
        self.finished: list[list[Hypothesis]] = [[] for _ in limits]  # the best of each sentence, best first
        self.cut_off: list[list[Hypothesis]] = [[] for _ in limits]

    def extend(self, tokens: NDArray[np.int64], log_probabilities: NDArray[np.float64]
               ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Extend the hypotheses by one token.

        Args:
            tokens, log_probabilities: for each open hypothesis the candidates for its next token, most probable first,
                (B, K, choices).

        Returns:
            The parent of each hypothesis that is open now, (B, K), and whether each sentence is not done yet, (B,).
        """
        batch, _, choices = tokens.shape
        candidates = (self.log_probabilities[:, :, None] + log_probabilities).reshape(batch, -1)
        # Stable: equally probable candidates stay in the order of parent and token.
        best = np.argsort(-candidates, axis=1, kind="stable")[:, :self.size]
        parents, total = best // choices, np.take_along_axis(candidates, best, axis=1)
        last = np.take_along_axis(tokens.reshape(batch, -1), best, axis=1)
        ids = np.concatenate([np.take_along_axis(self.ids, parents[:, :, None], axis=1), last[:, :, None]], axis=2)
        possible, ends = total > -math.inf, last == self.eos
        for row in np.flatnonzero((possible & ends).any(axis=1)).tolist():
            self._finish(row, ids[row], total[row], possible[row] & ends[row])

        is_open = possible & ~ends
        first = np.argsort(~is_open, axis=1, kind="stable")[:, :max(1, is_open.sum(axis=1).max())]  # the open ones
        self.ids = np.take_along_axis(ids, first[:, :, None], axis=1)
        self.log_probabilities = np.take_along_axis(np.where(is_open, total, -math.inf), first, axis=1)
        at_limit = self.limits == self.ids.shape[2]
        for row in np.flatnonzero(at_limit).tolist():
            self.cut_off[self.sentences[row]] = self._hypotheses(
                self.ids[row], self.log_probabilities[row], self.log_probabilities[row] > -math.inf, False)
        return np.take_along_axis(parents, first, axis=1), ~at_limit & self._can_improve()

    def _finish(self, row: int, ids: NDArray[np.int64], total: NDArray[np.float64], which: NDArray[np.bool_]) -> None:
        """Add hypotheses that have ended to the best of their sentence."""
        finished = [*self.finished[self.sentences[row]], *self._hypotheses(ids[:, :-1], total, which, True)]
        finished.sort(key=lambda hypothesis: -hypothesis.score)
        self.finished[self.sentences[row]] = finished = finished[:self.num_best]
        if len(finished) == self.num_best:
            self.to_beat[row] = finished[-1].score

    def _hypotheses(self, ids: NDArray[np.int64], total: NDArray[np.float64], which: NDArray[np.bool_],
                    finished: bool) -> list[Hypothesis]:
        length = ids.shape[1] + finished  # end-of-sentence counts
        return [Hypothesis(tokens, self.score(log_probability, length), log_probability, finished)
                for tokens, log_probability in zip(ids[which].tolist(), total[which].tolist(), strict=True)]

    def _can_improve(self) -> NDArray[np.bool_]:
        """Whether an open hypothesis of each sentence may still end up among the `num_best`, (B,).

        Its log-probability can only fall, but the divisor grows with the length. Log-probabilities are negative, so the
        upper bound of its score is that of its present log-probability at the greatest length.
        """
        hope: NDArray[np.float64] = self.score(self.log_probabilities[:, 0], self.limits)
        return hope > self.to_beat

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Keep these sentences alone, in this order."""
        self.sentences, self.limits, self.to_beat = self.sentences[rows], self.limits[rows], self.to_beat[rows]
        self.ids, self.log_probabilities = self.ids[rows], self.log_probabilities[rows]

    def best(self) -> list[list[Hypothesis]]:
        """The `num_best` hypotheses of each sentence: finished ones by score, then cut-off ones by probability."""
        found = [(finished + cut_off)[:self.num_best]
                 for finished, cut_off in zip(self.finished, self.cut_off, strict=True)]
        if not all(found):
            raise nothing_left()
        return found


def scoring(alpha: float, caller: str) -> Score:
    """The function that scores hypotheses; errors name the `caller`."""
    if not 0 <= alpha <= MAX_ALPHA:  # nan, too
        raise ValueError(f"{caller}: alpha must be a number from 0 to {MAX_ALPHA:g}, got {alpha}")
    return lambda log_probability, length: log_probability / ((5 + length) / 6) ** alpha
