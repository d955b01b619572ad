"""Notes on the lines of an input, such as the characters or words that a vocabulary lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from transformer.data.tokenizer import Tokenizer
from transformer.training.messages import note
from transformer.translator import Translator

MOST, LONGEST = 10, 40  # pieces that a note names, and characters of each
MOST_LINES = 20  # lines of an input that have a note of their own


def lacking(text: str, tokenizer: Tokenizer) -> str:
    """A sentence that quotes the parts of a text that the vocabulary lacks; "" if it has them all."""
    unknown = tokenizer.unknown(text)
    if not unknown:
        return ""
    more = f" and {len(unknown) - MOST:,} more" if len(unknown) > MOST else ""
    quoted = ", ".join(repr(piece[:LONGEST]) for piece in unknown[:MOST])
    return f"the vocabulary lacks {quoted}{more}; the model reads <unk> there"


def tell_unknown(translator: Translator, texts: Mapping[str, str | None]) -> None:
    """Write a note for each of these texts with parts that the vocabulary lacks: sources, and the TARGET."""
    for name, text in texts.items():
        tokenizer = translator.target_tokenizer if name == "TARGET" else translator.source_tokenizer
        if found := lacking(text or "", tokenizer):
            note(f"{name}: {found}")


def tell_unknown_of_all(lines: Sequence[str], tokenizer: Tokenizer) -> None:
    """Write one note with the number of the lines that have parts which the vocabulary lacks, and the most frequent."""
    unknown = [*filter(None, map(tokenizer.unknown, lines))]
    if unknown:
        often = ", ".join(f"{piece[:LONGEST]!r} ({n:,})" for piece, n in Counter(chain(*unknown)).most_common(5))
        note(f"{len(unknown):,} of {len(lines):,} sources have parts that the vocabulary lacks, most often {often}")


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
