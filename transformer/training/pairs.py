"""The pairs of a run as token ids, checked against the positions that the model has."""

from __future__ import annotations

import textwrap
from itertools import islice

import numpy as np

from transformer.data.examples import Examples
from transformer.data.parallel_text import Chosen, Pairs
from transformer.data.tokenizer import Tokenizer
from transformer.training.checkpoints import Run
from transformer.training.run_folder import RunError


def encode(pairs: Pairs, kind: str, run: Run, checksum: int = 0) -> Examples:
    """The token ids of `pairs`, by the tokenizers of `run`; RunError if one has more than the model's positions.

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
        text = textwrap.shorten(" ".join(next(islice(pairs, first, None))), 60, placeholder="…")
        raise RunError(f"{kind} pair {first + 1}, {text!r}, has more tokens than the model's {limit:,} positions "
                       f"(too long: {len(too_long):,}); shorten or remove it, or raise --max-length")
    return examples


def fitting(pairs: Pairs, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, limit: int
            ) -> tuple[Pairs, Examples]:
    """The pairs of at most `limit` tokens a side, and the examples of all pairs."""
    examples = Examples(pairs, source_tokenizer, target_tokenizer, limit)
    return (Chosen(pairs, ~examples.too_long) if examples.too_long.any() else pairs), examples
