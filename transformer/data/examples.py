"""Examples: sentence pairs as token ids, held while they are few and encoded again at each use when they are many."""

import zlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from transformer.data.batches import Example, encode_pairs
from transformer.data.indexed import Indexed
from transformer.data.tokenizer import Tokenizer

HELD = 2**25  # tokens, those of both sides: of at most so many, the ids are held, in 128 MiB
_CHUNK = 2**12  # pairs that are encoded together


class Examples(Indexed[Example]):
    """The examples of `pairs` as `encode_pairs` gives them.

    The lengths of all examples are held. If all have at most `HELD` tokens, so are their ids; otherwise an example is
    read from `pairs` and encoded whenever it is used.

    Args:
        pairs: (source, target) texts, which stay as they are.
        source_tokenizer, target_tokenizer: what encodes each side.
        limit: the greatest length of interest; greater ones count as ``limit + 1`` in `source_lengths` and `steps`.
        checksum: the checksum of the examples before these, which `checksum` continues.

    Attributes:
        source_lengths: unsigned integers (N,), the tokens of each source, ``EOS`` included.
        steps: unsigned integers (N,), the steps of the decoder for each target: its tokens and ``EOS``.
        checksum: the CRC-32 of all lengths and ids, which changes with the pairs and with the tokenizers.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]], source_tokenizer: Tokenizer, target_tokenizer: Tokenizer,
                 limit: int, checksum: int = 0) -> None:
        self._pairs, self._tokenizers, self.checksum = pairs, (source_tokenizer, target_tokenizer), checksum
        self._limit = limit
        self.source_lengths, self.steps = (np.empty(len(pairs), np.min_scalar_type(limit + 1)) for _ in range(2))
        self._starts, self._ids = array("i", [0]), array("i")  # of source, target, source, target, …; all in a row
        tokens, done = 0, 0
        for lengths, flat in self._encoded():
            starts = np.cumsum(lengths) - lengths
            self.checksum = zlib.crc32(np.insert(flat, starts, lengths).astype("<i8").tobytes(), self.checksum)
            end = done + len(lengths) // 2
            self.source_lengths[done:end] = np.minimum(lengths[0::2], limit + 1)
            self.steps[done:end] = np.minimum(lengths[1::2] + 1, limit + 1)
            if tokens + len(flat) <= HELD:
                self._starts.frombytes((starts + lengths + tokens).astype("i").tobytes())
                self._ids.frombytes(flat.astype("i").tobytes())
            elif self._ids:
                self._starts, self._ids = array("i"), array("i")
            tokens, done = tokens + len(flat), end

    def _encoded(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Chunk by chunk: the lengths of source, target, source, target, …, and the ids of all of them in a row."""
        pairs = iter(self._pairs)
        while chunk := list(islice(pairs, _CHUNK)):
            sides = [ids for example in encode_pairs(chunk, *self._tokenizers) for ids in example]
            lengths = np.fromiter(map(len, sides), np.int64, len(sides))
            yield lengths, np.fromiter(chain.from_iterable(sides), np.int64, int(lengths.sum()))

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def too_long(self) -> NDArray[np.bool_]:
        """Boolean (N,): True for an example with more than `limit` tokens in the source or steps of the decoder."""
        return (self.source_lengths > self._limit) | (self.steps > self._limit)

    def at(self, place: int) -> Example:
        """An example: the ids of source and target."""
        if not self._ids:
            return encode_pairs([self._pairs[place]], *self._tokenizers)[0]
        start, middle, end = self._starts[2 * place:2 * place + 3]
        return self._ids[start:middle].tolist(), self._ids[middle:end].tolist()
