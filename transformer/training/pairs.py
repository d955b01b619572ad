"""The pairs of a run as token ids, checked against the positions that the model has."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from transformer.data.batches import Example
from transformer.data.examples import Examples
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
    too_long = np.flatnonzero((examples.source_lengths > limit) | (examples.steps > limit))
    if too_long.size:
        first = int(too_long[0])
        raise PairTooLong(kind, first, pairs[first], examples[first], limit, len(too_long) - 1)
    return examples
