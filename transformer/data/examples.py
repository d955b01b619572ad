"""Examples: sentence pairs as token ids, in memory, or in a temporary file where they are many."""

import zlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from tempfile import TemporaryFile

import numpy as np
from numpy.typing import NDArray

from transformer.data.batches import Example, encode_pairs
from transformer.data.parallel_text import Chosen, Pairs
from transformer.data.tokenizer import Tokenizer

HELD = 2**25  # tokens, those of both sides: of at most so many, the ids are in memory, in 128 MiB
_CHUNK = 2**12  # pairs that are encoded together


class Examples(Sequence[Example]):
    """The examples of `pairs` as `encode_pairs` gives them, encoded when it is made, and not again in any epoch.

    The ids of all sides lie in a row: in memory, or, of more than `HELD` tokens, in a temporary file that is mapped.

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
        ids, lengths = array("i"), array("i")
        with TemporaryFile() as file:
            for of_sides, flat in _encoded(pairs, source_tokenizer, target_tokenizer):
                starts = np.cumsum(of_sides) - of_sides
                checksum = zlib.crc32(np.insert(flat, starts, of_sides).astype("<i8").tobytes(), checksum)
                lengths.frombytes(of_sides.astype("i").tobytes())
                ids.frombytes(flat.astype("i").tobytes())
                if len(ids) > HELD:
                    ids.tofile(file)
                    del ids[:]
            if file.tell():
                ids.tofile(file)
                file.flush()
            self._ids = np.asarray(np.memmap(file, "i", "r") if file.tell() else ids)
        sides = np.asarray(lengths).reshape(-1, 2)
        self._starts = np.cumsum(sides.sum(axis=1)) - sides.sum(axis=1)
        self.source_lengths, self.steps, self.checksum = sides[:, 0], sides[:, 1] + 1, checksum
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


def _encoded(pairs: Pairs, *tokenizers: Tokenizer) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Chunk by chunk: the lengths of source, target, source, target, …, and the ids of all of them in a row."""
    rest = iter(pairs)
    while chunk := list(islice(rest, _CHUNK)):
        sides = [ids for example in encode_pairs(chunk, *tokenizers) for ids in example]
        lengths = np.fromiter(map(len, sides), np.int64, len(sides))
        yield lengths, np.fromiter(chain.from_iterable(sides), np.int64, int(lengths.sum()))
