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
from minigrad import functional as F
from minigrad.arguments import whole_number
from minigrad.device import is_array, is_host, on_device_of, to_numpy, xp

from transformer.data.batches import trimmed
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
        last: the last token of each text, (B, 1).
        limits: the most tokens of each text's extension, end included.
        end: the token that ends a hypothesis; −1: none does.
        never: tokens that no hypothesis contains.

    Attributes:
        limits, end: as given.
        length: the number of tokens of each hypothesis so far.
        last: the last token of each hypothesis, (B, K); all texts have the same number K, 1 at first.
    """

    def __init__(self, model: nn.Module, next_token: Any, last: NDArray[np.int64], limits: list[int], end: int,
                 never: Sequence[int]) -> None:
        self.model, self.last, self.limits, self.end = model, last, limits, end
        self.length = 0
        self._next_token, self._never = next_token, sorted(set(never))
        self._parents: NDArray[np.int64] | None = None  # the `parents` of `go_on`

    def logits(self) -> Any:
        """The logits of the next token: a raw array (B · K, V) on the model's device, valid until the next step."""
        return self._next_token(self.last, self._parents)

    def log_probabilities(self) -> Any:
        """The log-probabilities of the next token, as `logits`; −inf for tokens that no hypothesis contains."""
        out = F.log_softmax(self.logits())
        for token in self._never:
            out[:, token] = -math.inf
        return out

    def most_probable(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The `count` most probable next tokens of each hypothesis and their log-probabilities; see `most_probable`.

        Returns:
            Two host arrays (B, K, min(count, V)).
        """
        tokens, log_probabilities = most_probable(self.logits(), count, self._never)
        self.check(log_probabilities[:, :1])
        return tokens.reshape(*self.last.shape, -1), log_probabilities.reshape(*self.last.shape, -1)

    def check(self, log_probabilities: NDArray[np.float64]) -> None:
        """Raise NotFinite unless the log-probabilities of chosen tokens, on the host, are finite."""
        if not np.isfinite(log_probabilities).all():
            raise overflow(self.model, "probabilities")

    def go_on(self, tokens: NDArray[np.int64], parents: NDArray[np.int64] | None = None) -> None:
        """Replace the hypotheses of each text by extensions of one token.

        Args:
            tokens: the last token of each new hypothesis, (B, K).
            parents: the number of the hypothesis that each one extends, (B, K); None: its own number.
        """
        self.length += 1
        self.last, self._parents = tokens, parents

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Make these texts, in this order, the batch; a text may occur several times."""
        self.last = self.last[rows]
        if len(rows):
            self._next_token.select(rows)


def translation(model: Transformer, source: Any, max_length: int | None) -> Steps:
    """The steps of translating sentences, which are encoded here.

    Args:
        model: a model in evaluation mode, under ``no_grad``: see `decoding`.
        source: ids (B, S), padded.
        max_length: the most tokens of a translation, end-of-sentence included; None for `default_max_length`. A limit
            does not depend on padding, so that a sentence has the same translation alone and in a batch.
    """
    config, ids = model.config, model.source_ids(source)
    lengths = source_lengths(model, source)
    limits = _limits(lengths, max_length, config.max_length)
    # An empty batch is never decoded.
    next_token = decoder_of(model, model.encode(ids), model.memory_mask(ids)) if lengths.size else None
    return Steps(model, next_token, np.full((len(lengths), 1), config.bos_id), limits, config.eos_id,
                 (config.pad_id, config.bos_id))


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
    tokens, found = [], []
    for _ in range(min(count, logits.shape[1])):
        token = logits.argmax(axis=-1)[:, None]  # (rows, 1)
        tokens.append(token)
        found.append(namespace.take_along_axis(logits, token, axis=-1))
        namespace.put_along_axis(logits, token, -math.inf, axis=-1)
    apart = namespace.concatenate([*found, *excluded], axis=-1)  # the values that −inf replaced in the logits
    top = apart.max(axis=-1, keepdims=True)
    top = namespace.where(top == -math.inf, top.dtype.type(0), top)
    logits -= top
    total = namespace.exp(logits, out=logits).sum(axis=-1, keepdims=True)
    apart -= top
    total += namespace.exp(apart).sum(axis=-1, keepdims=True)
    chosen = namespace.concatenate(tokens, axis=-1)
    return read_back(chosen, apart[:, :chosen.shape[1]] - namespace.log(total))


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


def in_parts(decode: Callable[[Any], list[T]], model: Transformer, source: Any) -> list[T]:
    """The results of `decode` for all rows of `source`, (B, S); within `minigrad.parallel.threads`, in several threads.

    A batch is divided if the model is on the host. Sentences of like length form a part, and a part drops the last
    columns that are padding in all of its rows.
    """
    if model.device != "cpu" or parallel.thread_count() < 2:
        return decode(source)
    source = model.source_ids(source)
    parts = min(parallel.thread_count(), len(source) // LEAST_ROWS)
    if parts < 2:
        return decode(source)
    lengths = source_lengths(model, source)
    order = np.argsort(lengths, kind="stable").tolist()
    shares = parallel.shares(order, lengths[order].tolist(), parts)
    found = parallel.run([partial(decode, trimmed(source[rows], model.config.pad_id)) for rows in shares])
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


def _limits(source_lengths: NDArray[np.int64], max_length: int | None, positions: int) -> list[int]:
    if max_length is None:
        return [default_max_length(length, positions) for length in source_lengths.tolist()]
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
