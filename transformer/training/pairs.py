"""The pairs of a run as token ids, checked against the positions that the model has."""

from __future__ import annotations

import textwrap
from itertools import islice

import numpy as np

from transformer.data.batches import Example
from transformer.data.examples import Examples
from transformer.data.parallel_text import Chosen, Pairs
from transformer.data.tokenizer import Tokenizer
from transformer.training.checkpoints import Run
from transformer.training.run_folder import RunError


class PairTooLong(RunError):
    """A pair has more tokens than the model has positions; the message has its length and the remedy."""

    def __init__(self, kind: str, index: int, pair: tuple[str, str], example: Example, positions: int,
                 others: int) -> None:
        lengths = len(example[0]), len(example[1]) + 1
        side = 0 if lengths[0] > positions else 1
        name, more = ("source", "target")[side], f" (there are {others:,} more like it)" if others else ""
        text = textwrap.shorten(pair[side], 60, placeholder="…")
        super().__init__(f"{kind} pair {index + 1}, {text!r}, has {lengths[side]:,} {name} tokens with "
                         f"end-of-sentence, more than the model's {positions:,} positions{more}; shorten or remove it, "
                         "or raise --max-length")


def encode(pairs: Pairs, kind: str, run: Run, checksum: int = 0) -> Examples:
    """The token ids of `pairs`, by the tokenizers of `run`; PairTooLong names the `kind` of the pairs.

    Args:
        pairs: (source, target) texts.
        kind: "training" or "validation".
        run: has the tokenizers, and the number of positions.
        checksum: the checksum of the examples before these, see `Examples`.
    """
    limit = run.config.max_length
    examples = Examples(pairs, run.source_tokenizer, run.target_tokenizer, limit, checksum)
    too_long = np.flatnonzero(examples.too_long)
    if too_long.size:
        first = int(too_long[0])
        pair = next(islice(pairs, first, None))
        raise PairTooLong(kind, first, pair, examples[first], limit, len(too_long) - 1)
    return examples


def fitting(pairs: Pairs, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, limit: int
            ) -> tuple[Pairs, Examples]:
    """The pairs of at most `limit` tokens a side, and the examples of all pairs."""
    examples = Examples(pairs, source_tokenizer, target_tokenizer, limit)
    return (Chosen(pairs, ~examples.too_long) if examples.too_long.any() else pairs), examples
