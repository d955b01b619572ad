"""The pairs of a run as token ids, checked against the positions that the model has."""

from __future__ import annotations

import textwrap
import zlib
from collections.abc import Sequence
from itertools import chain

import numpy as np

from transformer.data.batches import Example, encode_pairs
from transformer.training.checkpoints import Run
from transformer.training.run_folder import RunError

Pairs = Sequence[tuple[str, str]]


class PairTooLong(RunError):
    """A pair has more tokens than the model has positions.

    Attributes:
        kind: "training" or "validation".
        index: the number of the pair, counted from 0.
        side: 0 if the source is too long, else 1.
        problem: its length and the remedy, in words.
    """

    def __init__(self, kind: str, index: int, pair: tuple[str, str], example: Example, positions: int,
                 others: int) -> None:
        lengths = len(example[0]), len(example[1]) + 1
        self.kind, self.index, self.side = kind, index, 0 if lengths[0] > positions else 1
        name, more = ("source", "target")[self.side], f" (there are {others:,} more like it)" if others else ""
        self.problem = (f"{lengths[self.side]:,} {name} tokens with end-of-sentence, more than the model's "
                        f"{positions:,} positions{more}; shorten or remove it, or raise --max-length")
        text = textwrap.shorten(pair[self.side], 60, placeholder="…")
        super().__init__(f"{kind} pair {index + 1}, {text!r}, has {self.problem}")


def encode(pairs: Pairs, kind: str, run: Run) -> list[Example]:
    """The token ids of `pairs`, by the tokenizers of `run`; PairTooLong names the `kind` of the pairs."""
    examples = encode_pairs(pairs, run.source_tokenizer, run.target_tokenizer)
    limit = run.config.max_length
    too_long = [i for i, (source, target) in enumerate(examples) if len(source) > limit or len(target) + 1 > limit]
    if too_long:
        first = too_long[0]
        raise PairTooLong(kind, first, pairs[first], examples[first], limit, len(too_long) - 1)
    return examples


def checksum(*sides: list[Example]) -> int:
    """A checksum of the token ids of all examples, which changes with the pairs and with the tokenizers."""
    parts = ((len(ids), *ids) for examples in sides for example in examples for ids in example)
    return zlib.crc32(np.fromiter(chain.from_iterable(parts), "<i8").tobytes())
