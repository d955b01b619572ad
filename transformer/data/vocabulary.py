"""Vocabulary: the two-way table between tokens and integer ids."""

from collections import Counter
from collections.abc import Sequence

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")


class Vocabulary:
    """Tokens numbered from 0, the four specials ``<pad> <bos> <eos> <unk>`` always first.

    Args:
        tokens: the ordinary tokens, in the order of their ids, which start at 4. A list that begins with all
            four specials is accepted too, so that ``Vocabulary(other.tokens)`` is a copy of ``other``.

    Attributes:
        tokens: all tokens, specials included; ``tokens[i]`` is the token with id i.

    Raises:
        ValueError: a token occurs twice, or is spelt like a special.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        ordinary = tuple(tokens)
        if ordinary[: len(SPECIALS)] == SPECIALS:
            ordinary = ordinary[len(SPECIALS) :]
        self.tokens = SPECIALS + ordinary
        token, count = Counter(self.tokens).most_common(1)[0]
        if count > 1:
            raise ValueError(f"Vocabulary: the token {token!r} occurs {count} times; tokens must be distinct, and none "
                             "of them a special")
        self._ids = {token: index for index, token in enumerate(ordinary, start=len(SPECIALS))}

    def __len__(self) -> int:
        return len(self.tokens)

    def id_of(self, token: str) -> int:
        """The id of a token of some text; ``UNK`` if it is unknown.

        No text names a special: ``id_of("<eos>")`` is ``UNK``, so a sentence that contains ``<eos>`` literally
        does not end there. The specials' ids are the constants ``PAD``, ``BOS``, ``EOS`` and ``UNK``.
        """
        return self._ids.get(token, UNK)

    def token_of(self, index: int) -> str:
        """The token with id ``index``.

        Raises:
            IndexError: there is no such id; a negative id does not count from the end.
        """
        if not 0 <= index < len(self.tokens):
            raise IndexError(f"Vocabulary: id {index} is not among the ids 0 to {len(self.tokens) - 1}")
        return self.tokens[index]
