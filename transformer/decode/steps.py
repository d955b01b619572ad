"""The steps of decoding, which greedy decoding, sampling and beam search share: probabilities of the next token."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import minigrad
from minigrad import Tensor, nn, parallel
from minigrad.arguments import whole_number
from minigrad.device import is_array, is_host, on_device_of, to_numpy, xp
from minigrad.functional.embedding import integer_ids

from transformer.data.batches import trimmed
from transformer.decode.controls import OFF, Controls, DecodingError
from transformer.decode.next_token import decoder_of
from transformer.finite import overflow, unwarned
from transformer.model import Transformer

T = TypeVar("T")

LEAST_ROWS = 8  # the fewest sentences of a part of a batch that gets its own thread


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


class Steps:
    """A batch of texts that are extended by one token of each hypothesis at every step.

    Hypotheses are kept on the host. With the model on a GPU, each step synchronises once, to read back the chosen
    tokens. It uploads at most two small arrays: the tokens, (B, K), and the mask of the hypotheses in beam search, or
    the random numbers in sampling. Texts that end add two uploads for all layers together. Nothing else is
    transferred after the first step.

    Args:
        model: a model in evaluation mode, under ``no_grad``: see `decoding`.
        next_token: what computes the logits, with the call and the `select` of `AsWritten`.
        ids: what each text begins with, (B, length).
        limits: the most tokens of each text's extension, end included.
        end: the token that ends a hypothesis; −1: none does.
        never: tokens that no hypothesis contains.
        controls: options of what may follow.
        prefix: the tokens that each text's extension begins with, (B, any number), filled up with −1.

    Attributes:
        limits, end: as given.
        length: the number of tokens of each hypothesis so far.
        ids: the beginning and the tokens of each hypothesis, (B, K, ·); all texts have the same number K, 1 at first.
    """

    def __init__(self, model: nn.Module, next_token: Any, ids: NDArray[np.int64], limits: list[int], end: int,
                 never: Sequence[int], controls: Controls, prefix: NDArray[np.int64]) -> None:
        self.model, self.ids, self.limits, self.end = model, ids[:, None], limits, end
        self.length = 0
        self._next_token, self._never, self._controls, self._prefix = next_token, sorted(set(never)), controls, prefix
        self._controlled = controls != OFF or prefix.size > 0
        self._parents: NDArray[np.int64] | None = None  # the `parents` of `go_on`

    @property
    def last(self) -> NDArray[np.int64]:
        """The last token of each hypothesis, (B, K)."""
        return self.ids[:, :, -1]

    def logits(self) -> Any:
        """The logits of the next token: a raw array (B · K, V) on the model's device, valid until the next step."""
        return self._next_token(self.last, self._parents)

    def log_probabilities(self) -> Any:
        """The log-probabilities of the next token, as `logits`; −inf for tokens that may not follow."""
        batch, hypotheses, length = self.ids.shape
        forced = np.full(batch * hypotheses, -1)
        if self.length < self._prefix.shape[1]:
            forced = np.repeat(self._prefix[:, self.length], hypotheses)
        texts = self.ids.reshape(-1, length)
        return self._controls.log_probabilities(self.logits(), texts, self.length, self.end, self._never, forced)

    def most_probable(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The `count` most probable next tokens of each hypothesis and their log-probabilities; see `most_probable`.

        Returns:
            Two host arrays (B, K, min(count, V)).
        """
        if self._controlled:
            tokens, log_probabilities = read_back(*largest(self.log_probabilities(), count))
        else:
            tokens, log_probabilities = most_probable(self.logits(), count, self._never)
        self.check(log_probabilities[:, :1])
        return tokens.reshape(*self.last.shape, -1), log_probabilities.reshape(*self.last.shape, -1)

    def check(self, log_probabilities: NDArray[np.float64]) -> None:
        """Raise NotFinite unless the log-probabilities of chosen tokens, on the host, are finite.

        Where options exclude tokens, −inf stands for a hypothesis that none may follow.
        """
        if not (np.isfinite(log_probabilities) | ((log_probabilities == -math.inf) & self._controlled)).all():
            raise overflow(self.model, "probabilities")

    def go_on(self, tokens: NDArray[np.int64], parents: NDArray[np.int64] | None = None) -> None:
        """Replace the hypotheses of each text by extensions of one token.

        Args:
            tokens: the last token of each new hypothesis, (B, K).
            parents: the number of the hypothesis that each one extends, (B, K); None: its own number.
        """
        self.length += 1
        before = self.ids if parents is None else np.take_along_axis(self.ids, parents[:, :, None], axis=1)
        self.ids, self._parents = np.concatenate([before, tokens[:, :, None]], axis=2), parents

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Make these texts, in this order, the batch; a text may occur several times."""
        self.ids, self._prefix = self.ids[rows], self._prefix[rows]
        if len(rows):
            self._next_token.select(rows)


def translation(model: Transformer, source: Any, max_length: int | None = None,
                prefix: NDArray[np.int64] | None = None, controls: Controls = OFF) -> Steps:
    """The steps of translating sentences, which are encoded here.

    Args:
        model: a model in evaluation mode, under ``no_grad``: see `decoding`.
        source: ids (B, S), padded.
        max_length: the most tokens of a translation, end-of-sentence included; None for `default_max_length`. A limit
            does not depend on padding, so that a sentence has the same translation alone and in a batch.
        prefix: as for `Steps`; None: none.
        controls: as for `Steps`.
    """
    config, ids = model.config, model.source_ids(source)
    lengths = source_lengths(model, source)
    prefix = np.empty((len(lengths), 0), np.int64) if prefix is None else prefix
    fewest = np.maximum((prefix >= 0).sum(axis=1), controls.min_length).tolist()
    limits = _limits(lengths, fewest, max_length, config.max_length)
    # An empty batch is never decoded.
    next_token = decoder_of(model, model.encode(ids), model.memory_mask(ids)) if lengths.size else None
    return Steps(model, next_token, np.full((len(lengths), 1), config.bos_id), limits, config.eos_id,
                 (config.pad_id, config.bos_id), controls, prefix)


def most_probable(logits: Any, count: int, never: Sequence[int] = ()) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The most probable tokens of each row, best first, and their log-probabilities.

    For beams of the usual size, one argmax for each token is faster than a partition, and of equally probable tokens
    the smaller id comes first. Only the log-probabilities of the result are computed:
    ``log softmax(x)ᵢ = (xᵢ - top) - log Σ exp(x - top)``.

    Args:
        logits: a raw array (rows, V), which is overwritten.
        count: the number of tokens.
        never: tokens that are not chosen, though they have a share of the probability.

    Returns:
        Two host arrays (rows, min(count, V)); −inf marks tokens that are excluded.
    """
    namespace = xp(logits)
    excluded = [logits[:, token:token + 1].copy() for token in never]  # (rows, 1) each, without an upload of indices
    for token in never:
        logits[:, token] = -math.inf
    chosen, found = largest(logits, count)
    apart = namespace.concatenate([found, *excluded], axis=-1)  # the values that −inf replaced in the logits
    top = apart.max(axis=-1, keepdims=True)
    top = namespace.where(top == -math.inf, top.dtype.type(0), top)
    logits -= top
    total = namespace.exp(logits, out=logits).sum(axis=-1, keepdims=True)
    apart -= top
    total += namespace.exp(apart).sum(axis=-1, keepdims=True)
    return read_back(chosen, apart[:, :chosen.shape[1]] - namespace.log(total))


def largest(scores: Any, count: int) -> tuple[Any, Any]:
    """The places of the `count` largest of each row, largest first, and their values, which −inf replaces."""
    namespace, tokens, found = xp(scores), [], []
    for _ in range(min(count, scores.shape[1])):
        token = scores.argmax(axis=-1)[:, None]  # (rows, 1)
        tokens.append(token)
        found.append(namespace.take_along_axis(scores, token, axis=-1))
        namespace.put_along_axis(scores, token, -math.inf, axis=-1)
    return namespace.concatenate(tokens, axis=-1), namespace.concatenate(found, axis=-1)


def remaining(stay: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rows where `stay` is True, in an order that moves few: rows from the end fill the places of those that leave.

    Example: the result is [0, 4, 3] if the second and third of five rows leave.
    """
    left = np.flatnonzero(stay)
    order = np.arange(len(left))
    order[~stay[:len(left)]] = left[left >= len(left)]
    return order


def source_lengths(model: Transformer, source: Any) -> NDArray[np.int64]:
    """The number of tokens in each row of `source`, ids (B, S); ValueError for a row without tokens.

    Ids on the host are counted there, even if the model is on a GPU; ids on a GPU are read back.
    """
    raw = source.data if isinstance(source, Tensor) else source
    ids = to_numpy(raw) if is_array(raw) else np.asarray(raw)
    lengths: NDArray[np.int64] = (ids != model.config.pad_id).sum(axis=1)
    if lengths.size and not lengths.min():
        raise ValueError(f"decoding: row {int(lengths.argmin())} of the source has no tokens; an empty sentence is "
                         f"end-of-sentence (id {model.config.eos_id}) alone")
    return lengths


def prefixes(model: Transformer, prefix: Any, batch: int) -> NDArray[np.int64]:
    """The tokens that each of `batch` translations begins with, (batch, any number), filled up with −1.

    Args:
        prefix: target ids, for all translations; or a list of them, with one for each.

    Raises:
        IndexError: an id outside the vocabulary.
        ValueError: another number of prefixes; padding, begin- or end-of-sentence in one.
    """
    given = [prefix] * batch if len(prefix) and not np.ndim(prefix[0]) else prefix
    rows = [integer_ids(row, "decoding: prefix", model.config.target_vocab_size) for row in given]
    if rows and len(rows) != batch:
        raise ValueError(f"decoding: a prefix for each of the {batch} sentences expected, got {len(rows)}")
    special = {model.config.pad_id, model.config.bos_id, model.config.eos_id}
    out = np.full((batch, max(map(len, rows), default=0)), -1)
    for row, ids in enumerate(rows):
        if not special.isdisjoint(ids.tolist()):
            raise ValueError(f"decoding: prefix {row} has padding, or the beginning or the end of a sentence: {ids}")
        out[row, :len(ids)] = ids
    return out


def in_parts(decode: Callable[[Any, Any], list[T]], model: Transformer, source: Any, prefix: Any) -> list[T]:
    """The results of `decode` for all rows of `source`, (B, S); within `minigrad.parallel.threads`, in several threads.

    `decode` is called with rows of `source`, and with those of the `prefixes`.

    A batch is divided if the model is on the host. Sentences of like length form a part, and a part drops the last
    columns that are padding in all of its rows.
    """
    prefix = prefixes(model, prefix, len(source))
    if model.device != "cpu" or parallel.thread_count() < 2:
        return decode(source, prefix)
    source = model.source_ids(source)
    parts = min(parallel.thread_count(), len(source) // LEAST_ROWS)
    if parts < 2:
        return decode(source, prefix)
    lengths = source_lengths(model, source)
    order = np.argsort(lengths, kind="stable").tolist()
    shares = parallel.shares(order, lengths[order].tolist(), parts)
    found = parallel.run([partial(decode, trimmed(source[rows], model.config.pad_id), prefix[rows]) for rows in shares])
    results = dict(zip(order, chain(*found), strict=True))
    return [results[row] for row in range(len(source))]


@contextmanager
def decoding(model: nn.Module) -> Iterator[None]:
    """A block in evaluation, under ``no_grad``, on the model's device; the model keeps its mode, for other threads.

    NumPy gives no warning of overflow: `Steps.check` finds what comes of it.
    """
    first = next(model.parameters(), None)
    device = nullcontext() if first is None else on_device_of(first.data)
    with nn.evaluating(), minigrad.no_grad(), device, unwarned():
        yield


def default_max_length(source_length: int, positions: int) -> int:
    """The default length limit of a translation, in tokens: ``2 · source_length + 10``, at most `positions`."""
    return min(2 * source_length + 10, positions)


def _limits(source_lengths: NDArray[np.int64], fewest: list[int], max_length: int | None, positions: int) -> list[int]:
    least, most = max(fewest, default=0), positions if max_length is None else max_length
    if least > most:
        raise DecodingError(f"decoding: a prefix or min_length of {least} tokens is more than the {most} of max_length")
    if max_length is None:
        return [max(default_max_length(length, positions), least)
                for length, least in zip(source_lengths.tolist(), fewest, strict=True)]
    max_length = whole_number(max_length, "max_length", "decoding")
    if max_length > positions:
        raise ValueError(f"decoding: max_length {max_length} is more than the model's {positions} positions; ask for "
                         f"at most {positions}, or train a model with a greater TransformerConfig.max_length")
    return [max_length] * len(source_lengths)


def read_back(tokens: Any, log_probabilities: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Copy two arrays of one shape to the host; from a GPU as one array, so that a step synchronises once."""
    if is_host(tokens):
        return tokens.astype(np.int64, copy=False), log_probabilities.astype(np.float64)
    both = to_numpy(xp(tokens).stack([tokens.astype(np.float64), log_probabilities.astype(np.float64)]))
    return both[0].astype(np.int64), both[1]  # float64 holds every id exactly
