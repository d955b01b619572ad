"""The steps of decoding, which greedy decoding, sampling and beam search share: probabilities of the next token."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import minigrad
from minigrad import Tensor, nn, parallel
from minigrad.arguments import whole_number
from minigrad.device import asarray_on, device_of, is_host, on_device, on_device_of, to_numpy, xp
from minigrad.functional.embedding import integer_ids
from minigrad.tensor import as_tensor

from transformer.data.batches import trimmed
from transformer.decode.cache import Cache
from transformer.decode.controls import OFF, Controls, DecodingError
from transformer.finite import overflow, unwarned
from transformer.model import Transformer

T = TypeVar("T")

LEAST_ROWS = 8  # the fewest sentences of a part of a batch that gets its own thread


class Steps:
    """A batch of texts that are extended by one token of each hypothesis at every step.

    Hypotheses are kept on the host. With the model on a GPU, each step synchronises once, to read back the chosen
    tokens. It uploads the ids; in beam search what each hypothesis may see, and in sampling the random numbers.

    Args:
        model: a model in evaluation mode, under ``no_grad``: see `decoding`.
        forward: what computes logits (B · K, T, V) of ids (B · K, T), and of `beside` with a row for each of them; or
            with ``cache=…`` those of the tokens that the `Cache` does not have yet, and of `beside` as it is. If it, or
            a part of the model, takes no cache or ignores it, all is computed anew at each step.
        ids: what each text begins with, (B, length).
        beside: tensors, arrays or None, with a row for each text.
        limits: the most tokens of each text's extension, end included, (B,).
        end: the token that ends a hypothesis; −1: none does.
        never: tokens that no hypothesis contains.
        controls: options of what may follow.
        prefix: the tokens that each text's extension begins with, (B, any number), filled up with −1; None: none.

    Attributes:
        limits, end: as given.
        ids: the beginning and the tokens of each hypothesis, (B, K, ·); all texts have the same number K, 1 at first.
    """

    def __init__(self, model: nn.Module, forward: Callable[..., Tensor], ids: NDArray[np.int64], beside: Sequence[Any],
                 limits: NDArray[np.int64], end: int, never: Sequence[int], controls: Controls,
                 prefix: NDArray[np.int64] | None = None) -> None:
        self.model, self.ids, self.limits, self.end = model, ids[:, None], limits, end
        self._forward, self._beside = forward, list(beside)
        self._cache: Cache | None = Cache()
        self._begin, self._controls, self._never = ids.shape[1], controls, sorted(set(never))
        self._prefix = np.empty((len(ids), 0), np.int64) if prefix is None else prefix
        self._controlled = controls != OFF or self._prefix.size > 0

    @property
    def said(self) -> NDArray[np.int64]:
        """The tokens of each hypothesis after the beginning, (B, K, ·)."""
        return self.ids[:, :, self._begin:]

    def logits(self) -> Any:
        """The logits of the next token: a raw array (B · K, V) on the model's device, not to be changed."""
        batch, hypotheses, length = self.ids.shape
        ids = self.ids.reshape(-1, length)
        if self._cache is not None:
            try:
                logits = self._forward(ids, *self._beside, cache=self._cache).data[:, -1]
                if self._cache.holds(length, bool(self._beside)):
                    return logits
            except TypeError as error:
                if "unexpected keyword argument 'cache'" not in str(error):
                    raise
            self._cache = None
        return self._forward(ids, *self._rows(np.arange(batch).repeat(hypotheses))).data[:, -1]

    def log_probabilities(self) -> Any:
        """The log-probabilities of the next token, (B · K, V); −inf for tokens that may not follow."""
        batch, hypotheses, added = self.said.shape
        forced = self._prefix[:, added] if added < self._prefix.shape[1] else np.full(batch, -1)
        texts = self.ids.reshape(batch * hypotheses, -1)
        return self._controls.log_probabilities(self.logits(), texts, added, self.end, self._never,
                                                forced.repeat(hypotheses))

    def most_probable(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The `count` most probable next tokens of each hypothesis, best first, and their log-probabilities.

        Of equally probable tokens the smaller id comes first. For beams of the usual size, one argmax for each token is
        faster than a partition.

        Returns:
            Two host arrays (B, K, min(count, V)).
        """
        scores = self.log_probabilities()
        rows, tokens, found = xp(scores).arange(len(scores)), [], []
        for _ in range(min(count, scores.shape[1])):
            tokens.append(scores.argmax(axis=-1))
            found.append(scores[rows, tokens[-1]])
            scores[rows, tokens[-1]] = -math.inf
        return self.on_host(xp(scores).stack(tokens, axis=-1), xp(scores).stack(found, axis=-1))

    def on_host(self, tokens: Any, log_probabilities: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Chosen tokens (B · K, n) and their log-probabilities, on the host, (B, K, n); from a GPU as one array.

        NotFinite unless the first of each row is finite; where options exclude tokens, −inf says that none may follow.
        """
        if is_host(tokens):
            tokens, log_probabilities = tokens.astype(np.int64, copy=False), log_probabilities.astype(np.float64)
        else:  # so that a step synchronises once; float64 holds every id exactly
            both = to_numpy(xp(tokens).stack([tokens.astype(np.float64), log_probabilities.astype(np.float64)]))
            tokens, log_probabilities = both[0].astype(np.int64), both[1]
        best = log_probabilities[:, 0]
        if not (np.isfinite(best) | ((best == -math.inf) & self._controlled)).all():
            raise overflow(self.model, "probabilities")
        shape = *self.ids.shape[:2], -1
        return tokens.reshape(shape), log_probabilities.reshape(shape)

    def go_on(self, tokens: NDArray[np.int64], parents: NDArray[np.int64], texts: NDArray[np.int64]) -> None:
        """Replace the hypotheses by extensions of one token.

        Args:
            tokens: the last token of each new hypothesis, (B, K).
            parents: the number of the hypothesis of its text that each one extends, (B, K).
            texts: the number of each text in the batch so far, (B,).
        """
        moved = not np.array_equal(texts, np.arange(len(self.ids)))
        self.ids = np.concatenate([self.ids[texts[:, None], parents], tokens[:, :, None]], axis=2)
        self._prefix = self._prefix[texts]
        if len(texts) and self._cache is not None:
            self._cache.select(texts, parents)
        if len(texts) and moved:
            self._beside = self._rows(texts)

    def _rows(self, texts: NDArray[np.int64]) -> list[Any]:
        """What is beside these texts, for each of them."""
        raw = [x.data if isinstance(x, Tensor) else x for x in self._beside]
        device = next((device_of(x) for x in raw if x is not None), "cpu")
        with on_device(device):
            index = asarray_on(device, texts)
            return [None if x is None else as_tensor(x[index]) for x in raw]


def translation(model: Transformer, source: Any, max_length: int | None = None,
                prefix: NDArray[np.int64] | None = None, controls: Controls = OFF) -> Steps:
    """The steps of translating sentences, which are encoded here.

    Args:
        model: a model in evaluation mode, under ``no_grad``: see `decoding`.
        source: ids (B, S), padded.
        max_length: the most tokens of a translation, end-of-sentence included; None: twice the source's, plus 10. No
            limit depends on padding, so that a sentence has the same translation alone and in a batch.
        prefix, controls: as for `Steps`.
    """
    config, ids = model.config, model.source_ids(source)
    lengths = source_lengths(model, ids)
    fewest = np.full(len(lengths), controls.min_length)
    if prefix is not None:
        fewest = np.maximum((prefix >= 0).sum(axis=1), fewest)
    most = config.max_length if max_length is None else whole_number(max_length, "max_length", "decoding")
    if most > config.max_length:
        raise ValueError(f"decoding: max_length {max_length} is more than the model's {config.max_length} positions; "
                         "ask for fewer, or train a model with a greater TransformerConfig.max_length")
    if (fewest > most).any():
        raise DecodingError(f"decoding: a prefix or min_length of {fewest.max()} tokens is more than the {most} of "
                            "max_length")
    limits = np.full(len(lengths), most)
    if max_length is None:
        limits = np.maximum(np.minimum(2 * lengths + 10, most), fewest)
    beside = (model.encode(ids), model.memory_mask(ids)) if lengths.size else ()  # an empty batch is never decoded
    return Steps(model, model.decode, np.full((len(lengths), 1), config.bos_id), beside, limits, config.eos_id,
                 (config.pad_id, config.bos_id), controls, prefix)


def remaining(stay: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rows where `stay` is True, in an order that moves few: rows from the end fill the places of those that leave.

    Example: the result is [0, 4, 3] if the second and third of five rows leave.
    """
    left = np.flatnonzero(stay)
    order = np.arange(len(left))
    order[~stay[:len(left)]] = left[left >= len(left)]
    return order


def source_lengths(model: Transformer, ids: Any) -> NDArray[np.int64]:
    """The number of tokens in each row of source ids, a raw array (B, S), on the host; ValueError for a row without."""
    lengths: NDArray[np.int64] = to_numpy((ids != model.config.pad_id).sum(axis=1))
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
    source = model.source_ids(source)
    prefix, parts = prefixes(model, prefix, len(source)), min(parallel.thread_count(), len(source) // LEAST_ROWS)
    if model.device != "cpu" or parts < 2:
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

    NumPy gives no warning of overflow: `Steps.on_host` finds what comes of it.
    """
    first = next(model.parameters(), None)
    device = nullcontext() if first is None else on_device_of(first.data)
    with nn.evaluating(), minigrad.no_grad(), device, unwarned():
        yield
