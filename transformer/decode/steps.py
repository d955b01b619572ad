"""What every way of decoding needs: the log-probabilities of the next token, for the rows that are still open."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import minigrad
from minigrad import functional as F
from minigrad.device import asarray_on, is_host, on_device_of, to_numpy, xp
from minigrad.tensor import as_tensor

from transformer.model import Transformer


@dataclass(frozen=True)
class Hypothesis:
    """One translation of one sentence.

    Attributes:
        ids: its tokens, without begin- and end-of-sentence.
        score: what hypotheses are ranked by: the log-probability, normalised for length where beam search is asked to.
        log_probability: natural logarithm of P(ids | source), end-of-sentence included if it was reached.
        finished: whether it ended in end-of-sentence, rather than at the greatest length.
    """

    ids: list[int]
    score: float
    log_probability: float
    finished: bool


class Steps:
    """A batch of sentences being decoded: encoded once, then one token a row at each step.

    Args:
        model: in evaluation mode, under ``no_grad``: see `decoding`.
        source: ids (B, S), padded.
        max_length: the most tokens of a translation, end-of-sentence included; None for `default_max_length`.

    Attributes:
        limits: the most tokens of each sentence's translation, (B,). They depend on the sentence alone, never on the
            padding, so that a sentence is translated alike alone and in a batch.
        sentences: which sentence each row translates, (rows,); at first one row for each.
        last: the token that each row ends in so far, (rows,).
    """

    def __init__(self, model: Transformer, source: Any, max_length: int | None) -> None:
        self.model, config = model, model.config
        source = model.source_ids(source)
        lengths = (to_numpy(source) != config.pad_id).sum(axis=1)
        if lengths.size and not lengths.min():
            raise ValueError(f"decoding: row {int(lengths.argmin())} of the source has no tokens; an empty sentence is "
                             f"end-of-sentence (id {config.eos_id}) alone")
        self.limits = _limits(lengths, max_length, config.max_length)
        self.never = sorted({config.pad_id, config.bos_id})  # tokens that no translation contains
        self.last: NDArray[np.int64] = np.full(len(lengths), config.bos_id)
        self.sentences = np.arange(len(lengths))
        self._cache = model.new_cache()
        if lengths.size:  # an empty batch is never decoded
            self._memory = model.encode(source)
            self._mask = model.memory_mask(source)

    def log_probabilities(self) -> Any:
        """Of each token to come next: a raw array (rows, target_vocab_size) on the model's device, −inf for `never`."""
        logits = self.model.decode(self.last[:, None], self._memory, self._mask, self._cache)  # (rows, 1, V)
        out = F.log_softmax(logits[:, -1]).data
        for token in self.never:
            out[:, token] = -math.inf
        return out

    def go_on(self, rows: Sequence[int] | NDArray[np.int64], tokens: Sequence[int] | NDArray[np.int64]) -> None:
        """Let these rows, in this order, be the batch, each followed by its token.

        Args:
            rows: indices into the rows so far, any number of times each.
            tokens: as many target ids.
        """
        self.select(rows)
        self.last = np.array(tokens, np.int64)

    def select(self, rows: Sequence[int] | NDArray[np.int64]) -> None:
        """Let these rows, in this order, be the batch; any number of times each."""
        rows = np.array(rows, np.int64)
        if np.array_equal(rows, np.arange(len(self.last))):
            return
        before, self.sentences = self.sentences, self.sentences[rows]
        self.last = self.last[rows]
        if not rows.size:
            return
        same_sentences = np.array_equal(before, self.sentences)  # beams change places: what belongs to the source stays
        index = asarray_on(self.model.device, rows)
        if self._cache.length:  # then the cache holds what the decoder needs of the memory
            self._cache.select(index, same_memory=same_sentences)
        else:
            self._memory = as_tensor(self._memory.data[index])
        if self._mask is not None and not same_sentences:
            self._mask = self._mask[index]


@contextmanager
def decoding(model: Transformer) -> Iterator[None]:
    """Evaluation mode without recording, on the model's device; afterwards every module is in the mode it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with minigrad.no_grad(), on_device_of(next(model.parameters()).data):
            yield
    finally:
        for module, training in modes:
            module.training = training


def default_max_length(source_length: int, positions: int) -> int:
    """The most tokens of a translation if nobody says: ``2 · source_length + 10``, but not more than the positions."""
    return min(2 * source_length + 10, positions)


def _limits(source_lengths: NDArray[np.int64], max_length: int | None, positions: int) -> list[int]:
    if max_length is None:
        return [default_max_length(length, positions) for length in source_lengths.tolist()]
    max_length = at_least_one("max_length", max_length)
    if max_length > positions:
        raise ValueError(f"decoding: max_length {max_length} is more than the model's {positions} positions; ask for "
                         f"at most {positions}, or train a model with a greater TransformerConfig.max_length")
    return [max_length] * len(source_lengths)


def at_least_one(name: str, value: Any) -> int:
    """`value` as an integer of at least 1; TypeError or ValueError otherwise."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"decoding: {name} must be an integer, got {type(value).__name__}") from None
    if number < 1:
        raise ValueError(f"decoding: {name} must be at least 1, got {number}")
    return number


def read_back(tokens: Any, log_probabilities: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Two arrays of one shape on the host. From a GPU they come as one, so that each step waits for it once."""
    if is_host(tokens):
        return tokens.astype(np.int64, copy=False), log_probabilities.astype(np.float64)
    both = to_numpy(xp(tokens).stack([tokens.astype(np.float64), log_probabilities.astype(np.float64)]))
    return both[0].astype(np.int64), both[1]  # float64 holds every id exactly
