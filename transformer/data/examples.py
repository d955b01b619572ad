"""Examples: sentence pairs as token ids, in a temporary file."""

import zlib
from array import array
from collections.abc import Sequence
from itertools import chain, islice
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from transformer.data.batches import Example, encode_pairs
from transformer.data.parallel_text import Chosen, Pairs
from transformer.data.tokenizer import Tokenizer

_CHUNK = 2**12  # pairs that are encoded together


class Examples(Sequence[Example]):
    """The examples of `pairs` as `encode_pairs` gives them, encoded when it is made, and not again in any epoch.

    The ids of all sides lie in a row in a temporary file that is mapped into memory.

    A run on text makes two: the plan encodes all pairs, to choose those that fit and the model's size, and the trainer
    those that were chosen.

    Args:
        pairs: (source, target) texts.
        source_tokenizer, target_tokenizer: what encodes each side.
        limit: the greatest length of interest, see `too_long`.
        checksum: the checksum of the examples before these, which `checksum` continues.

    Attributes:
        source_lengths: integers (N,), the tokens of each source, ``EOS`` included.
        steps: integers (N,), the steps of the decoder for each target: its tokens and ``EOS``.
        too_long: boolean (N,): True for an example with more than `limit` tokens in the source or steps of the decoder.
        checksum: the CRC-32 of all lengths and ids, which changes with the pairs and with the tokenizers.
    """

    def __init__(self, pairs: Pairs, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, limit: int,
                 checksum: int = 0) -> None:
        lengths, rest = array("i"), iter(pairs)
        with TemporaryFile() as file:
            file.write(bytes(4))  # a number before all others, since an empty file cannot be mapped
            while chunk := list(islice(rest, _CHUNK)):
                sides = [ids for pair in encode_pairs(chunk, source_tokenizer, target_tokenizer) for ids in pair]
                lengths.extend(map(len, sides))
                row = chain.from_iterable((len(ids), *ids) for ids in sides)
                checksum = zlib.crc32(np.fromiter(row, "<i8").tobytes(), checksum)
                file.write(np.fromiter(chain.from_iterable(sides), np.int32).tobytes())
            file.flush()
            self._ids = np.asarray(np.memmap(file, np.int32, "r"))
        both: Any = np.asarray(lengths).reshape(-1, 2)
        self._starts = 1 + np.cumsum(both.sum(axis=1)) - both.sum(axis=1)
        self.source_lengths, self.steps, self.checksum = both[:, 0], both[:, 1] + 1, checksum
        self.too_long = (self.source_lengths > limit) | (self.steps > limit)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, place: int) -> Example:  # type: ignore[override]
        start = self._starts[place]
        middle = start + self.source_lengths[place]
        return self._ids[start:middle].tolist(), self._ids[middle:middle + self.steps[place] - 1].tolist()


def fitting(pairs: Pairs, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, limit: int
            ) -> tuple[Pairs, Examples]:
    """The pairs of at most `limit` tokens a side, and the examples of all pairs."""
    examples = Examples(pairs, source_tokenizer, target_tokenizer, limit)
    return (Chosen(pairs, ~examples.too_long) if examples.too_long.any() else pairs), examples
