"""The one loop of every way of decoding: at each step the best few hypotheses of every text, all in one batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import minigrad
from minigrad import Tensor, nn, parallel
from minigrad.arguments import number, whole_number
from minigrad.device import asarray_on, device_of, on_device_of, to_numpy, xp

from transformer.decode.cache import Cache
from transformer.decode.controls import Controls, Ids
from transformer.decode.recorded_steps import RecordedSteps
from transformer.finite import first_not_finite, overflow, unwarned

T = TypeVar("T")
Floats = NDArray[np.float64]
Beside = Mapping[str, Tensor | None]

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
    """Extends each text of a batch: ``for tokens in search`` goes step by step, and `found` then has the results.

    Hypotheses are kept on the host. With the model on a GPU, each step synchronises once, to read back the chosen
    tokens. It uploads the ids; in beam search what each hypothesis may see, and in sampling the random numbers. Where
    `RecordedSteps` serve, a step after the first is one launch.

    Attributes:
        model: in any mode; a step runs in evaluation mode, see `decoding`.
        forward: what computes logits (B · K, T, V) of ids (B · K, T), and of `beside` with a row for each of them; or
            with ``cache=…`` those of the tokens that the `Cache` does not have yet, and of `beside` as it is. If it, or
            a part of the model, takes no cache or ignores it, all is computed anew at each step.
        ids: what each text begins with, (B, length).
        beside: tensors or None by name, with a row for each text.
        limits: the most tokens of each text's extension, end included, (B,).
        controls: options of what may follow.
        prefix: the tokens that each text's extension begins with, (longest, B), −1 beyond the end of each.
        size: K, the most hypotheses of a text that are open at a time.
        num_best: the number of results of each text, at most `size`.
        alpha: see `score`.
        uniform: numbers in [0, 1), (B, the most tokens), by which each next token is drawn; None: the `size` most
            probable of each hypothesis follow, of equal ones the smaller id.
        found: the best hypotheses of each text so far: finished ones by score, then cut-off ones by theirs.
        to_beat: the worst score of `num_best` finished hypotheses of each text, (B,); −inf where there are fewer.

    Raises:
        ValueError: `size`, `num_best` or `alpha` out of range; a beam that draws; no text is so short.
    """

    model: nn.Module
    forward: Callable[..., Tensor]
    ids: Ids
    beside: Beside
    limits: Ids
    controls: Controls
    prefix: Ids
    size: int = 1
    num_best: int = 1
    alpha: float = 0.0
    uniform: Floats | None = None

    def __post_init__(self) -> None:
        if whole_number(self.num_best, "num_best", "decoding") > whole_number(self.size, "beam_size", "decoding"):
            raise ValueError(f"decoding: a beam of {self.size} cannot give the {self.num_best} best; raise beam_size, "
                             "or lower num_best")
        if self.uniform is not None and self.size > 1:
            raise ValueError("decoding: beam search draws nothing at random; leave out beam_size, or temperature, "
                             "top_k and top_p")
        number(self.alpha, "alpha", "decoding", 0, MAX_ALPHA)
        fewest = np.maximum((self.prefix >= 0).sum(axis=0), self.controls.min_length)
        if (fewest > self.limits).any():
            raise ValueError(f"decoding: a prefix or min_length of {max(fewest)} tokens is more than the greatest "
                             f"length, {max(self.limits)}")
        self.found: list[list[Hypothesis]] = [[] for _ in self.ids]
        self.to_beat = np.full(len(self.ids), -math.inf)

    def __iter__(self) -> Iterator[Ids]:
        """The tokens of each step, (B, K), in the texts that are open; under `decoding`.

        B is the number of open texts, which falls as texts are done. The model reads a row for each hypothesis: row
        ``b · K + k`` is hypothesis k of open text b. Here ``texts`` (B,) are the numbers of the open texts, ``ids``
        (B, K, length) the tokens of their hypotheses, and ``totals`` (B, K) the log-probabilities of those, −inf where
        a text has fewer than K open ones. At the first step K is 1.
        """
        texts, ids, beside = np.arange(len(self.ids)), self.ids[:, None], self.beside
        totals: Floats = np.zeros((len(texts), 1))
        cache: Cache | None = Cache()
        recorded: RecordedSteps | None = None
        while texts.size:
            rules = partial(self._rules, ids, texts)
            found = recorded(ids, beside, rules) if recorded else None
            if found is None:
                logits, cache = self._logits(ids, beside, cache)
                classes = logits.shape[1]
                found = self.choose(logits, *rules(classes))
                first = ids.shape[2] == self.ids.shape[1]  # what cannot be recorded once is run at all later steps
                recorded = (RecordedSteps(self.model, cache, classes, self.choose)
                            if first and cache and RecordedSteps.serve(self.model, self.forward) else None)
            # Of each hypothesis the tokens that may follow, and their log-probabilities: (B, K, choices).
            candidates, gained = to_numpy(found).reshape(2, -1, *ids.shape[:2]).transpose(0, 2, 3, 1)
            candidates = candidates.astype(np.int64)
            totals = np.where(totals[:, :, None] == -math.inf, -math.inf, totals[:, :, None] + gained)
            self._require_candidates(texts, totals)
            # Stable: equally probable candidates stay in the order of parent and token.
            best = np.argsort(-totals.reshape(len(texts), -1), kind="stable")[:, :self.size]
            parents, choices = np.divmod(best, totals.shape[2])
            each = np.arange(len(texts))[:, None]
            tokens, totals = candidates[each, parents, choices], totals[each, parents, choices]
            ids = np.concatenate([ids[each, parents], tokens[:, :, None]], axis=2)
            closed = self._record(texts, ids, totals)
            totals[closed] = -math.inf
            # The log-probability of an open hypothesis can only fall, but the divisor grows with the length. Since
            # the former is negative, its score at the greatest length is the upper bound of what it may become.
            hope = self.score(totals.max(axis=1), self.limits[texts])
            order = remaining(hope > self.to_beat[texts])
            if recorded and 2 * order.size > len(texts):  # a graph serves one number of texts: half leave at once
                order = np.arange(len(texts))
            if 0 < order.size < len(texts):
                beside = _rows(beside, order)
            if cache is not None and order.size > 0:
                cache.select(order, parents[order])
            texts, totals, ids = texts[order], totals[order], ids[order]
            yield tokens

    def results(self) -> list[list[Hypothesis]]:
        """The `num_best` hypotheses of each text."""
        with decoding(self.model):
            for _ in self:
                pass
        return self.found

    def _logits(self, ids: Ids, beside: Beside, cache: Cache | None) -> tuple[Any, Cache | None]:
        """The logits of the next token, a raw array (B · K, V) not to be changed, and the cache; None if it is unused.
        """
        batch, hypotheses, length = ids.shape
        ids = ids.reshape(-1, length)
        try:
            if cache is not None:
                logits = self.forward(ids, **beside, cache=cache).data[:, -1]
                if cache.length == length and cache.holds(bool(beside)):  # not where a model reads a part of the ids
                    return logits, cache
        except TypeError as error:
            if "unexpected keyword argument 'cache'" not in str(error):
                raise
        return self.forward(ids, **_rows(beside, np.arange(batch).repeat(hypotheses))).data[:, -1], None

    def _rules(self, ids: Ids, texts: Ids, classes: int) -> tuple[Any, ...]:
        """What `choose` needs beside logits of `classes` tokens: host arrays, a row for each hypothesis, or None."""
        *shape, length = ids.shape
        added = length - self.ids.shape[1]
        forced = self.prefix[added, texts].repeat(shape[1]) if added < len(self.prefix) else None
        return (*self.controls.rules(ids.reshape(-1, length), added, classes, forced),
                None if self.uniform is None else self.uniform[texts, added])

    def choose(self, logits: Any, said: Any, banned: Any, uniform: Any) -> Any:
        """The best next tokens of each hypothesis, or one that is drawn, and below them their log-probabilities.

        Args:
            logits: a raw array (rows, V).
            said, banned: see `Controls.rules`.
            uniform: numbers in [0, 1), (rows,), or None. All three are on the host or with the logits.

        Returns:
            One array, so that a step synchronises once: float64, which holds every id exactly, (2 · choices, rows).
        """
        scores = self.controls.log_probabilities(logits, said, banned)
        choices, namespace = min(self.size, scores.shape[1]), xp(scores)
        places, found = namespace.arange(len(scores)), namespace.empty((2 * choices, len(scores)))
        for choice in range(choices):  # one argmax for each is faster than a partition
            tokens = (scores.argmax(axis=-1) if uniform is None else
                      self.controls.draw(scores, asarray_on(device_of(scores), uniform)))
            found[choice], found[choices + choice] = tokens, scores[places, tokens]
            if choice < choices - 1:
                scores[places, tokens] = -math.inf
        return found

    def _require_candidates(self, texts: Ids, totals: Floats) -> None:
        """Refuse NaN, and that no token may follow in a text without a result.

        Args:
            texts: (B,).
            totals: the log-probabilities of the hypotheses that the candidates make, (B, K, choices).

        Raises:
            NotFinite: the model gives no finite probabilities.
            ValueError: the options forbid all tokens.
        """
        broken = np.isnan(totals).any()
        if broken or not all(self.found[text] for text in texts[(totals == -math.inf).all(axis=(1, 2))]):
            if broken or first_not_finite(dict(self.model.named_parameters())):
                raise overflow(self.model, "probabilities")
            raise ValueError("decoding: no token may follow; lower min_length, raise no_repeat_ngram_size, or allow "
                             "more tokens")

    def _record(self, texts: Ids, ids: Ids, totals: Floats) -> Any:
        """Add each hypothesis that ends, or is cut off at the limit of its text, to those that are `found`.

        Args:
            texts: (B,).
            ids: (B, K, length), the new token last.
            totals: (B, K), −inf for what is no hypothesis.

        Returns:
            Whether each was added, (B, K).
        """
        added, ends = ids[:, :, self.ids.shape[1]:], ids[:, :, -1] == self.controls.end_id
        length = added.shape[2]
        cut_off = (self.limits[texts] == length)[:, None]
        closed = (totals > -math.inf) & (ends | cut_off)
        for place in np.argwhere(closed).tolist():
            ended, total, text = bool(ends[*place]), float(totals[*place]), texts[place[0]]
            found, own = self.found[text], added[*place].tolist()[:length - ended]
            found.append(Hypothesis(own, self.score(total, length), total, ended))
            found.sort(key=lambda h: (not h.finished, -h.score))
            del found[self.num_best:]
            if len(found) == self.num_best and found[-1].finished:
                self.to_beat[text] = found[-1].score
        return closed

    def score(self, log_probability: Any, length: Any) -> Any:
        """``log P / ((5 + length) / 6)^α``, Wu et al. 2016, equation 14; the end counts as a token."""
        return log_probability / ((5 + length) / 6) ** self.alpha


def _rows(beside: Beside, texts: Ids) -> Beside:
    """The rows of `beside` that belong to these texts."""
    return {name: None if x is None else x[texts] for name, x in beside.items()}


def remaining(stay: NDArray[np.bool_]) -> Ids:
    """The rows where `stay` is True, in an order that moves few: rows from the end fill the places of those that leave.

    Example: the result is [0, 3, 4] if the second and third of five rows leave.
    """
    left = np.flatnonzero(stay)
    order = np.arange(len(left))
    order[~stay[:len(left)]] = left[left >= len(left)]
    return order


def in_parts(decode: Callable[[Ids], list[T]], lengths: Ids, equal: bool) -> list[T]:
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
    results = dict(zip(chain(*parts), found, strict=True))
    return [results[row] for row in range(len(results))]


@contextmanager
def decoding(model: nn.Module) -> Iterator[None]:
    """A block in evaluation, under ``no_grad``, on the model's device; the model keeps its mode, for other threads.

    NumPy gives no warning of overflow: `Search` finds what comes of it.
    """
    first = next(model.parameters(), Tensor(0.0))  # a model without parameters runs on the host
    with nn.evaluating(), minigrad.no_grad(), on_device_of(first.data), unwarned():
        yield
