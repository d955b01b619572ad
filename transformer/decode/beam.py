"""Greedy decoding and beam search: at each step the best few hypotheses of every text, all in one batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minigrad.arguments import whole_number

from transformer.decode.controls import controls_of, nothing_left
from transformer.decode.steps import Steps, decoding, in_parts, remaining, translation
from transformer.model import Transformer

MAX_ALPHA = 10.0  # far beyond any use (the paper's are below 1), and safe from overflow
# (log-probability, length in tokens with end-of-sentence) -> score; for numbers or for arrays.
Score = Callable[[Any, Any], Any]
Choices = tuple[NDArray[np.int64], NDArray[np.float64]]  # tokens and their log-probabilities, (B, K, choices)
# (steps, numbers of the open texts) -> the candidates for the next token of each hypothesis, most probable first
Choose = Callable[[Steps, NDArray[np.int64]], Choices]


@dataclass(frozen=True)
class Hypothesis:
    """One translation of one sentence, or one continuation of a prompt.

    Attributes:
        ids: its tokens, without begin- and end-of-sentence and without the prompt.
        score: the log-probability, normalised for length in beam search, which ranks hypotheses by it.
        log_probability: natural logarithm of P(ids | source or prompt), end-of-sentence included if it was reached.
        finished: whether it ended in end-of-sentence, rather than at the greatest length.
    """

    ids: list[int]
    score: float
    log_probability: float
    finished: bool


def greedy(model: Transformer, source: Any, max_length: int | None = None, prefix: Any = (), **controls: Any
           ) -> list[Hypothesis]:
    """Greedy decoding: the most probable token at each step, which is a `beam_search` with one hypothesis.

    Args:
        model, source, max_length, prefix, controls: as for `beam_search`.

    Returns:
        One hypothesis for each row; its score is its log-probability.

    Raises:
        ValueError, TypeError, IndexError, NotFinite: as `beam_search`.
    """
    return [best for [best] in beam_search(model, source, 1, 1, max_length, 0.0, prefix, **controls)]


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
        prefix: target ids that every translation begins with; or a list of them, with one for each row. P is the
            probability of the whole translation.
        controls: the options of `Controls`, by name.

    Returns:
        For each row of `source` at most `num_best` different hypotheses, best first. Hypotheses cut off at `max_length`
        follow the finished ones, where fewer than `num_best` finished.

    Raises:
        ValueError: a row without tokens; an argument out of range; another number of prefixes than of rows.
        TypeError: an option that there is not.
        IndexError: an id outside the vocabulary.
        NotFinite: the model gives no finite probabilities.
    """
    beam_size = whole_number(beam_size, "beam_size", "beam_search")
    num_best = whole_number(num_best, "num_best", "beam_search")
    if num_best > beam_size:
        raise ValueError(f"beam_search: a beam of {beam_size} cannot give the {num_best} best; raise beam_size, or "
                         "lower num_best")
    score, options = scoring(alpha, "beam_search"), controls_of(beam_search, controls)

    def decode(source: Any, prefix: NDArray[np.int64]) -> list[list[Hypothesis]]:
        return Search(translation(model, source, max_length, prefix, options), beam_size, num_best, score).results()

    with decoding(model):
        return in_parts(decode, model, source, prefix)


class Search:
    """The open hypotheses of a batch of texts, best first, and what became of the others.

    Args:
        steps: the texts.
        size: the most hypotheses of a text that are open at a time.
        num_best: the number of results of each text.
        score: what ranks the finished ones.
        choose: the candidates for the next tokens; by default the `size` most probable of each hypothesis.
    """

    def __init__(self, steps: Steps, size: int, num_best: int, score: Score, choose: Choose | None = None) -> None:
        self.steps, self.size, self.num_best, self.score = steps, size, num_best, score
        self.choose: Choose = choose or (lambda steps, texts: steps.most_probable(size))
        self.texts = np.arange(len(steps.limits))  # the numbers of those that are not done
        self.totals = np.zeros((len(self.texts), 1))  # the log-probability of each open hypothesis; −inf fills up rows
        self.finished: list[list[Hypothesis]] = [[] for _ in self.texts]  # the best of each text, best first
        self.cut_off: list[list[Hypothesis]] = [[] for _ in self.texts]
        self.to_beat = np.full(len(self.texts), -math.inf)  # the worst score of `num_best` finished hypotheses

    def results(self) -> list[list[Hypothesis]]:
        """The `num_best` hypotheses of each text: finished ones by score, then cut-off ones by probability."""
        while self.texts.size:
            self.step()
        return [(finished + cut_off)[:self.num_best]
                for finished, cut_off in zip(self.finished, self.cut_off, strict=True)]

    def step(self) -> None:
        """Extend the open hypotheses by one token, and leave out the texts that are done."""
        tokens, gained = self.choose(self.steps, self.texts)
        batch, _, choices = tokens.shape
        candidates = (self.totals[:, :, None] + gained).reshape(batch, -1)
        # Stable: equally probable candidates stay in the order of parent and token.
        best = np.argsort(-candidates, axis=1, kind="stable")[:, :self.size]
        row = np.arange(batch)[:, None]
        parents, totals, tokens = best // choices, candidates[row, best], tokens.reshape(batch, -1)[row, best]
        limits = self.steps.limits[self.texts]
        at_limit = limits == self.steps.said.shape[2] + 1
        possible, ends = totals > -math.inf, tokens == self.steps.end
        for text in np.flatnonzero(at_limit | ends.any(axis=1) | ~possible.any(axis=1)).tolist():
            for place in np.flatnonzero(possible[text] & (ends[text] | at_limit[text])).tolist():
                said = self.steps.said[text, parents[text, place]].tolist()
                self._add(self.texts[text], said, tokens[text, place], float(totals[text, place]))
            if not (possible[text].any() or self.finished[self.texts[text]]):
                raise nothing_left()

        is_open = possible & ~ends
        totals = np.where(is_open, totals, -math.inf)
        # The log-probability of an open hypothesis can only fall, but the divisor grows with the length. Since the
        # former is negative, its score at the greatest length is the upper bound of what it may become.
        hope = self.score(totals.max(axis=1), limits)
        order = remaining(~at_limit & (hope > self.to_beat[self.texts]))
        first = np.argsort(~is_open, axis=1, kind="stable")[order, :max(1, is_open.sum(axis=1).max())]  # the open ones
        row = order[:, None]
        self.texts, self.totals = self.texts[order], totals[row, first]
        self.steps.go_on(tokens[row, first], parents[row, first], order)

    def _add(self, text: int, said: list[int], token: int, log_probability: float) -> None:
        """Add a hypothesis that `token` ends or that is at its limit."""
        score, ends = self.score(log_probability, len(said) + 1), bool(token == self.steps.end)  # the end counts
        found = self.finished[text] if ends else self.cut_off[text]
        found.append(Hypothesis(said if ends else [*said, int(token)], score, log_probability, ends))
        if ends:
            found.sort(key=lambda hypothesis: -hypothesis.score)
            del found[self.num_best:]
            if len(found) == self.num_best:
                self.to_beat[text] = found[-1].score


def scoring(alpha: float, caller: str) -> Score:
    """The function that scores hypotheses; errors name the `caller`."""
    if not 0 <= alpha <= MAX_ALPHA:  # nan, too
        raise ValueError(f"{caller}: alpha must be a number from 0 to {MAX_ALPHA:g}, got {alpha}")
    return lambda log_probability, length: log_probability / ((5 + length) / 6) ** alpha
