"""Notes on what a model cannot read: the characters or words of a text that its vocabulary lacks."""

from __future__ import annotations

from transformer.data.tokenizer import Tokenizer
from transformer.training.messages import note

MOST, LONGEST = 10, 40  # pieces that a note names, and characters of each
MOST_LINES = 20  # lines of an input that have a note of their own


def tell_unknown(name: str, text: str, tokenizer: Tokenizer) -> None:
    """If the vocabulary lacks parts of a text, write one line that quotes them to standard error."""
    unknown = tokenizer.unknown(text)
    if unknown:
        pieces = (piece if len(piece) <= LONGEST else f"{piece[:LONGEST]}…" for piece in unknown[:MOST])
        more = f" and {len(unknown) - MOST:,} more" if len(unknown) > MOST else ""
        note(f"{name}: the vocabulary lacks {', '.join(map(repr, pieces))}{more}; the model reads <unk> there")


class UnknownInLines:
    """The notes on the lines of an input: a bounded number of them, and at the end one line on the others."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer, self.lines = tokenizer, 0

    def tell(self, number: int, line: str) -> None:
        """The same for line `number`, unless there were many such lines before."""
        if self.tokenizer.unknown(line):
            self.lines += 1
            if self.lines <= MOST_LINES:
                tell_unknown(f"line {number}", line, self.tokenizer)

    def close(self) -> None:
        """Write how many lines have had no note of their own."""
        if self.lines > MOST_LINES:
            note(f"{self.lines - MOST_LINES:,} further lines have something that the model's vocabulary lacks")
