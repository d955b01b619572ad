"""The one loop of every way of decoding: at each step the best few hypotheses of every text, all in one batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import minigrad
from minigrad import Tensor, nn, parallel
from minigrad.arguments import whole_number
from minigrad.device import on_device_of, to_numpy, xp

from transformer.decode.cache import Cache
from transformer.decode.controls import OFF, Controls, DecodingError, nothing_left
from transformer.finite import first_not_finite, overflow, unwarned

T = TypeVar("T")
# (log-probabilities (B · K, V), numbers of the open texts, tokens so far) -> the candidates for the next token, best
# first, each a pair of tokens (B · K,) and their log-probabilities; the array may be overwritten
Choose = Callable[[Any, NDArray[np.int64], int], list[tuple[Any, Any]]]

MAX_ALPHA = 10.0  # far beyond any use (the paper's are below 1), and safe from overflow
LEAST_ROWS = 8  # the fewest texts of a part of a batch that gets its own thread


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


@dataclass(eq=False)
class Search:
    """The open hypotheses of a batch of texts, best first, and what became of the others.

    Hypotheses are kept on the host. With the model on a GPU, each step synchronises once, to read back the chosen
    tokens. It uploads the ids; in beam search what each hypothesis may see, and in sampling the random numbers.

    Attributes:
        model: a model in evaluation mode, under ``no_grad``: see `decoding`.
        forward: what computes logits (B · K, T, V) of ids (B · K, T), and of `beside` with a row for each of them; or
            with ``cache=…`` those of the tokens that the `Cache` does not have yet, and of `beside` as it is. If it, or
            a part of the model, takes no cache or ignores it, all is computed anew at each step.
        ids: what each text begins with, (B, length); then the beginning and the tokens of each open hypothesis of the
            texts that are not done, (B, K, ·). At first K is 1.
        beside: tensors or None by name, with a row for each text.
        limits: the most tokens of each text's extension, end included, (B,).
        end: the token that ends a hypothesis; −1: none does.
        never: tokens that no hypothesis contains.
        controls: options of what may follow.
        prefix: the tokens that each text's extension begins with, a list for each.
        size: K, the most hypotheses of a text that are open at a time.
        num_best: the number of results of each text, at most `size`.
        alpha: see `score`.
        choose: the candidates for the next tokens; None: the `size` most probable of each hypothesis.
        texts: the numbers of the texts that are not done.

    Raises:
        ValueError: `size`, `num_best` or `alpha` out of range; `DecodingError`: no text is so short.
    """

    model: nn.Module
    forward: Callable[..., Tensor]
    ids: NDArray[np.int64]
    beside: Mapping[str, Tensor | None]
    limits: NDArray[np.int64]
    end: int
    never: Sequence[int]
    controls: Controls = OFF
    prefix: Sequence[Sequence[int]] = ()
    size: int = 1
    num_best: int = 1
    alpha: float = 0.0
    choose: Choose | None = None

    def __post_init__(self) -> None:
        count, self.begin = self.ids.shape
        if whole_number(self.num_best, "num_best", "decoding") > whole_number(self.size, "beam_size", "decoding"):
            raise ValueError(f"decoding: a beam of {self.size} cannot give the {self.num_best} best; raise beam_size, "
                             "or lower num_best")
        if not 0 <= self.alpha <= MAX_ALPHA:  # nan, too
            raise ValueError(f"decoding: alpha must be a number from 0 to {MAX_ALPHA:g}, got {self.alpha}")
        self.prefix = self.prefix or [()] * count
        for ids, most in zip(self.prefix, self.limits, strict=True):
            fewest = max(len(ids), self.controls.min_length)
            if fewest > most:
                raise DecodingError(f"decoding: a prefix or min_length of {fewest} tokens is more than the greatest "
                                    f"length, {most}")
        self.texts, self.ids = np.arange(count), self.ids[:, None]
        self.totals = np.zeros((count, 1))  # the log-probability of each open hypothesis; −inf fills up rows
        self.found: list[list[Hypothesis]] = [[] for _ in self.texts]  # the best of each text, best first
        self.to_beat = np.full(count, -math.inf)  # the worst score of `num_best` finished hypotheses
        self.cache: Cache | None = Cache()

    def score(self, log_probability: Any, length: Any) -> Any:
        """``log P / ((5 + length) / 6)^α``, Wu et al. 2016, equation 14; the end counts as a token."""
        return log_probability / ((5 + length) / 6) ** self.alpha

    def results(self) -> list[list[Hypothesis]]:
        """The `num_best` hypotheses of each text: finished ones by score, then cut-off ones by theirs."""
        while self.texts.size:
            self.step()
        return self.found

    def step(self) -> None:
        """Extend the open hypotheses by one token, and leave out the texts that are done."""
        tokens, gained = self._candidates()
        batch, _, choices = tokens.shape
        totals = (self.totals[:, :, None] + gained).reshape(batch, -1)
        # Stable: equally probable candidates stay in the order of parent and token.
        best, row = np.argsort(-totals, axis=1, kind="stable")[:, :self.size], np.arange(batch)[:, None]
        totals, tokens, parents = totals[row, best], tokens.reshape(batch, -1)[row, best], best // choices
        ids = np.concatenate([self.ids[row, parents], tokens[:, :, None]], axis=2)
        limits, length = self.limits[self.texts], ids.shape[2] - self.begin
        at_limit, possible, ends = limits == length, totals > -math.inf, tokens == self.end
        for number, place in np.argwhere(possible & (ends | at_limit[:, None])).tolist():
            text, ended = self.texts[number], bool(ends[number, place])
            said, total = ids[number, place, self.begin:].tolist(), float(totals[number, place])
            found = [*self.found[text], Hypothesis(said[:length - ended], self.score(total, length), total, ended)]
            found = self.found[text] = sorted(found, key=lambda h: (not h.finished, -h.score))[:self.num_best]
            if len(found) == self.num_best and found[-1].finished:
                self.to_beat[text] = found[-1].score
        if not all(self.found[text] for text in self.texts[~possible.any(axis=1)]):
            raise nothing_left() if first_not_finite(dict(self.model.named_parameters())) is None else overflow(
                self.model, "probabilities")

        totals[ends] = -math.inf
        # The log-probability of an open hypothesis can only fall, but the divisor grows with the length. Since the
        # former is negative, its score at the greatest length is the upper bound of what it may become.
        hope = self.score(totals.max(axis=1), limits)
        order = remaining(~at_limit & (hope > self.to_beat[self.texts]))
        self.texts, self.totals, self.ids = self.texts[order], totals[order], ids[order]
        if order.size and self.cache is not None:
            self.cache.select(order, parents[order])
        if 0 < order.size < batch:
            self.beside = self._rows(order)

    def _candidates(self) -> Any:
        """The candidates for the next token of each hypothesis and their log-probabilities, on the host, (B, K, ·)."""
        batch, hypotheses, length = self.ids.shape
        added, prefixes = length - self.begin, [self.prefix[text] for text in self.texts.tolist()]
        forced = np.array([ids[added] if added < len(ids) else -1 for ids in prefixes])
        scores = self.controls.log_probabilities(self.logits(), self.ids.reshape(-1, length), added, self.end,
                                                 self.never, forced.repeat(hypotheses))
        if self.end >= scores.shape[1]:
            raise IndexError(f"decoding: the token {self.end} that ends a text is outside the vocabulary of "
                             f"{scores.shape[1]}")
        candidates = (self.choose or self._most_probable)(scores, self.texts, added)
        # One array, so that a step synchronises once: float64, which holds every id exactly.
        both = to_numpy(xp(scores).stack([*chain(*candidates)])).reshape(-1, 2, batch, hypotheses)
        tokens, gained = both.transpose(1, 2, 3, 0)
        if np.isnan(gained[:, :, 0]).any():
            raise overflow(self.model, "probabilities")
        return tokens.astype(np.int64), gained

    def _most_probable(self, scores: Any, texts: NDArray[np.int64], added: int) -> list[tuple[Any, Any]]:
        """The `size` most probable; of equal ones the smaller id. One argmax for each is faster than a partition."""
        rows, found = xp(scores).arange(len(scores)), []
        for _ in range(min(self.size, scores.shape[1])):
            tokens = scores.argmax(axis=-1)
            found.append((tokens, scores[rows, tokens]))
            scores[rows, tokens] = -math.inf
        return found

    def logits(self) -> Any:
        """The logits of the next token: a raw array (B · K, V) on the model's device, not to be changed."""
        batch, hypotheses, length = self.ids.shape
        ids = self.ids.reshape(-1, length)
        try:
            if self.cache is not None:
                logits = self.forward(ids, **self.beside, cache=self.cache).data[:, -1]
                if self.cache.holds(length, bool(self.beside)):
                    return logits
        except TypeError as error:
            if "unexpected keyword argument 'cache'" not in str(error):
                raise
        self.cache = None
        return self.forward(ids, **self._rows(np.arange(batch).repeat(hypotheses))).data[:, -1]

    def _rows(self, texts: NDArray[np.int64]) -> dict[str, Tensor | None]:
        """What is beside these texts, for each of them."""
        return {name: None if x is None else x[texts] for name, x in self.beside.items()}


def remaining(stay: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rows where `stay` is True, in an order that moves few: rows from the end fill the places of those that leave.

    Example: the result is [0, 4, 3] if the second and third of five rows leave.
    """
    left = np.flatnonzero(stay)
    order = np.arange(len(left))
    order[~stay[:len(left)]] = left[left >= len(left)]
    return order


def in_parts(decode: Callable[[NDArray[np.int64]], list[T]], lengths: NDArray[np.int64], equal: bool) -> list[T]:
    """The results of `decode`, called with the numbers of texts of like length; in `minigrad.parallel.threads` at once.

    Args:
        decode: the numbers of some texts → their results.
        lengths: of all texts.
        equal: whether those that are decoded together must have the same length.
    """
    order = np.argsort(lengths, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1) if equal else [order]
    parts = [part for rows in groups for part in parallel.shares(
        rows.tolist(), lengths[rows].tolist(), max(1, min(parallel.thread_count(), len(rows) // LEAST_ROWS)))]
    found = chain(*parallel.run([partial(decode, np.array(rows)) for rows in parts]))
    return [result for _, result in sorted(zip(chain(*parts), found, strict=True), key=itemgetter(0))]


@contextmanager
def decoding(model: nn.Module) -> Iterator[None]:
    """A block in evaluation, under ``no_grad``, on the model's device; the model keeps its mode, for other threads.

    NumPy gives no warning of overflow: `Search` finds what comes of it.
    """
    first = next(model.parameters(), None)
    device = nullcontext() if first is None else on_device_of(first.data)
    with nn.evaluating(), minigrad.no_grad(), device, unwarned():
        yield
