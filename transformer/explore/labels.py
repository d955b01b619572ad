"""The names of rows and columns: one way in the terminal, in plots and on the page.

A row or a column that stands for a token is named by the token's text:

1. A white-space character that would not be seen has a sign: ␣ a blank, ⇥ a tab, ⏎ a line feed. A text without any
   character is "(empty)".
2. If the same text occurs more than once in the sequence, each occurrence has its number, counted from 1, as a
   subscript: the sequence 2 0 2 1 has the names "2₁" "0" "2₂" "1". Padding has no numbers.

Keys, and the queries of an encoder, are named so (`names`). A row of a decoder's queries stands for two tokens: the one
that is read there, and the one that is to be written next (`row_names`): "2₁ → 0". Both are of one sequence, the tokens
that are read and, behind them, the last to be written. So rule 2 counts in that sequence, and the token that one row
writes has the same name in the next, which reads it. Of a text of its own, one that the next row does not read, only
rule 1 makes a name. Where the next token is not known, an empty text, and where it is padding, the row is named by the
token that is read.

The page names the tokens of a sentence that is typed there by the same rules.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

from transformer.data.vocabulary import PAD, SPECIALS

PADDING = SPECIALS[PAD]
SIGNS = str.maketrans({" ": "␣", "\N{IDEOGRAPHIC SPACE}": "␣", "\t": "⇥", "\n": "⏎"})
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def names(tokens: Sequence[str]) -> list[str]:
    """The names of the tokens of a sequence, in its order."""
    texts = [_seen(token) for token in tokens]
    total, so_far, found = Counter(texts), Counter[str](), list[str]()
    for text in texts:
        so_far[text] += 1
        numbered = total[text] > 1 and text != PADDING
        found.append(text + str(so_far[text]).translate(SUBSCRIPTS) if numbered else text)
    return found


def row_names(read: Sequence[str], written: Sequence[str]) -> list[str]:
    """The names of a decoder's rows: "read → written".

    Args:
        read: the token that the decoder reads in each row.
        written: the token that it is to write after each; an empty text where that is not known.

    Raises:
        ValueError: there are not as many of one as of the other.
    """
    sequence = [*read, *written[-1:]]
    own = names(sequence)
    rows = zip(own[:-1], written, sequence[1:], own[1:], strict=True)
    return [name if token in ("", PADDING) else f"{name} → {target if token == following else _seen(token)}"
            for name, token, following, target in rows]


def columns_of(text: str) -> int:
    """The columns that a text takes in a terminal: combining marks take none, wide characters two."""
    return sum(0 if unicodedata.category(c) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in text)


def _seen(token: str) -> str:
    return token.translate(SIGNS) or "(empty)"
