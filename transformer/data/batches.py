"""Batches: examples of like length, measured in tokens and padded into arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.data.tokenizer import Tokenizer
from transformer.data.vocabulary import BOS, EOS, PAD

Example = tuple[list[int], list[int]]
"""Token ids of one sentence pair: the source with its ``EOS``, the target without ``BOS`` and ``EOS``."""


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """B sentence pairs, padded with ``PAD`` to the longest: S source tokens, T steps of the decoder.

    Attributes:
        source: int64 (B, S), each row the sentence and ``EOS``.
        target: int64 (B, T + 1), each row ``BOS``, the sentence, ``EOS``. The decoder reads
            ``target[:, :-1]`` and predicts ``target[:, 1:]``. A training hands only ``target[:, 1:]`` to
            `Transformer.loss`, as labels; that puts ``BOS`` before them again for the decoder to read.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]

    @property
    def num_target_tokens(self) -> int:
        """The number of tokens that the decoder predicts: all of ``target`` but ``BOS`` and ``PAD``."""
        return int(np.count_nonzero(self.target != PAD)) - len(self.target)


def encode_pairs(
    pairs: Sequence[tuple[str, str]], source_tokenizer: Tokenizer, target_tokenizer: Tokenizer
) -> list[Example]:
    """Token ids of `pairs` of texts: ``EOS`` ends the source; the target is as encoded.

    Args:
        pairs: (source, target).
        source_tokenizer, target_tokenizer: what encodes each side.
    """
    return [
        ([*source_tokenizer.encode(source), EOS], target_tokenizer.encode(target)) for source, target in pairs
    ]


def batches_by_length(
    examples: Sequence[Example], batch_tokens: int, seed: int, epoch: int
) -> list[NDArray[np.int64]]:
    """Divide ``examples`` into batches of like length; every example is in exactly one batch.

    The size of a batch is its number of sentences times its longest side, padding included: B × max(S, T) in
    the terms of ``Batch``. Neither the source nor the target then holds more than ``batch_tokens``
    positions, which bounds memory and time. A sentence that is longer than that makes a batch of one.

    Sentences with the same two lengths are shuffled, and so are the batches. The order is a function of
    (``seed``, ``epoch``) alone, so an interrupted epoch can be resumed at any batch.

    Returns:
        One int64 array of indices into ``examples`` for each batch.
    """
    source_lengths = np.array([len(source) for source, _ in examples], dtype=np.int64)
    steps = np.array([len(target) + 1 for _, target in examples], dtype=np.int64)
    return divide(source_lengths, steps, batch_tokens, np.random.default_rng([seed, epoch]))


def divide(source_lengths: NDArray[np.int64], steps: NDArray[np.int64], batch_tokens: int,
           rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """The batches of `batches_by_length` from the lengths alone; their number does not depend on `rng`.

    Args:
        source_lengths, steps: int64 (N,): the tokens of each source with ``EOS``, the steps of each target.
        batch_tokens: the size of a batch.
        rng: where the order comes from.
    """
    order = rng.permutation(len(steps))
    # Sort by target length, then by source length, ascending and descending in turn: where one target length
    # follows another, source lengths are alike. lexsort is stable, so equal lengths stay in the order drawn.
    zigzag = np.where(steps % 2, source_lengths, -source_lengths)
    order = order[np.lexsort((zigzag[order], steps[order]))]
    batches = np.split(order, _cuts(np.maximum(source_lengths, steps)[order].tolist(), batch_tokens))
    return [batches[i] for i in rng.permutation(len(batches)) if len(batches[i])]


def _cuts(lengths: list[int], batch_tokens: int) -> list[int]:
    """Where to cut a row of sentences of these lengths to keep count × longest within ``batch_tokens``."""
    cuts, start, longest = [], 0, 0
    for position, length in enumerate(lengths):
        longest = max(longest, length)
        if position > start and longest * (position + 1 - start) > batch_tokens:
            cuts.append(position)
            start, longest = position, length
    return cuts


def collate(examples: Sequence[Example], indices: Sequence[int] | NDArray[np.int64]) -> Batch:
    """The padded arrays of ``examples[i] for i in indices``, in that order.

    Raises:
        ValueError: ``indices`` is empty.
    """
    sources, targets = zip(*[examples[i] for i in indices], strict=True)
    return Batch(padded(sources), padded([[BOS, *target, EOS] for target in targets]))


def padded(rows: Sequence[list[int]]) -> NDArray[np.int64]:
    """The rows of ids as one array, int64 (B, longest), with ``PAD`` after their ends."""
    array = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for row, tokens in zip(array, rows, strict=True):
        row[: len(tokens)] = tokens
    return array


def trimmed(ids: Any, pad_id: int) -> Any:
    """Ids (B, S), a host array, without the last columns that are padding in every row; the first column stays."""
    real = np.flatnonzero((ids != pad_id).any(axis=0))
    return ids[:, :real.max(initial=0) + 1]
