"""Notes on the texts that a command reads, such as on characters or words that a vocabulary lacks."""

from __future__ import annotations

from transformer.data.tokenizer import Tokenizer
from transformer.training.messages import note

MOST, LONGEST = 10, 40  # pieces that a note names, and characters of each
MOST_NOTES = 20  # on texts


class Notes:
    """Writes a bounded number of notes on named texts, and at the end one that counts the rest."""

    def __init__(self) -> None:
        self.count = 0

    def tell(self, name: str, message: str) -> None:
        """Write a note on the text, unless there were many before."""
        self.count += 1
        if self.count <= MOST_NOTES:
            note(f"{name}: {message}")

    def unknown(self, name: str, text: str | None, tokenizer: Tokenizer) -> None:
        """Write a note if the vocabulary lacks parts of the text."""
        if unknown := tokenizer.unknown(text or ""):
            more = f" and {len(unknown) - MOST:,} more" if len(unknown) > MOST else ""
            quoted = ", ".join(repr(piece[:LONGEST]) for piece in unknown[:MOST])
            self.tell(name, f"the vocabulary lacks {quoted}{more}; the model reads <unk> there")

    def close(self) -> None:
        """Write how many notes were left out."""
        if self.count > MOST_NOTES:
            note(f"{self.count - MOST_NOTES:,} further notes are left out")
