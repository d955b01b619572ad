"""Notes on the lines of an input, such as the characters or words that a vocabulary lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from transformer.data.tokenizer import Tokenizer
from transformer.data.vocabulary import UNK
from transformer.training.messages import note

MOST, LONGEST = 10, 40  # pieces that a note names, and characters of each
MOST_LINES = 20  # lines of an input that have a note of their own


def lacking(text: str, tokenizer: Tokenizer) -> str:
    """A sentence that quotes the parts of a text that the vocabulary lacks; "" if it has them all."""
    unknown = tokenizer.unknown(text)
    if not unknown:
        return ""
    more = f" and {len(unknown) - MOST:,} more" if len(unknown) > MOST else ""
    return f"the vocabulary lacks {', '.join(map(_quoted, unknown[:MOST]))}{more}; the model reads <unk> there"


def tell_unknown(name: str, text: str, tokenizer: Tokenizer) -> None:
    """If the vocabulary lacks parts of a text, write one line that quotes them to standard error."""
    if found := lacking(text, tokenizer):
        note(f"{name}: {found}")


def tell_unknown_of_all(lines: Sequence[str], tokenizer: Tokenizer) -> None:
    """Write one line with the number of words or characters that the vocabulary lacks, and the most frequent ones."""
    unknown = Counter(chain.from_iterable(map(tokenizer.unknown, lines)))
    if unknown:
        ids = Counter(chain.from_iterable(map(tokenizer.encode, lines)))
        kind = tokenizer.kind if tokenizer.kind in ("words", "characters") else "tokens"
        often = ", ".join(f"{_quoted(piece)} ({count:,})" for piece, count in unknown.most_common(5))
        note(f"unknown to the vocabulary: {ids[UNK]:,} of {ids.total():,} source {kind} "
             f"({ids[UNK] / ids.total():.1%}); most often {often}")


class LineNotes:
    """Notes on the lines of an input: a bounded number of them, and at the end one on the others."""

    def __init__(self) -> None:
        self.count = 0

    def tell(self, number: int, text: str) -> None:
        """Write a note on line `number`, unless there were many before."""
        self.count += 1
        if self.count <= MOST_LINES:
            note(f"line {number}: {text}")

    def close(self) -> None:
        """Write how many notes were left out."""
        if self.count > MOST_LINES:
            note(f"{self.count - MOST_LINES:,} further notes on lines are left out")


def _quoted(piece: str) -> str:
    return repr(piece if len(piece) <= LONGEST else f"{piece[:LONGEST]}…")
