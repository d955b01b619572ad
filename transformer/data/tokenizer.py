"""Tokenizers: text to token ids and back, by words, characters or byte pairs."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import chain
from typing import Any, ClassVar, Self

from transformer.data.extras import require
from transformer.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary


class Tokenizer(ABC):
    """The interface of every tokenizer; ``kind`` is its name in files and on the command line."""

    kind: ClassVar[str]
    vocabulary: Vocabulary

    @classmethod
    @abstractmethod
    def train(cls, texts: Iterable[str], size: int | None = None) -> Self:
        """Learn a vocabulary of at most ``size`` tokens, the four specials included, from ``texts``."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The token ids of ``text``, without ``BOS`` and ``EOS``; of the specials, only ``UNK`` can occur."""

    def unknown(self, text: str) -> list[str]:
        """The parts of ``text`` that are ``UNK`` to the vocabulary, each once; none where every text encodes."""
        return []

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids`` up to the first ``EOS``, less ``PAD`` and ``BOS``; ``UNK`` shows as ``<unk>``.

        Raises:
            IndexError: an id is not in the vocabulary.
        """
        kept: list[int] = []
        for index in ids:
            if index == EOS:
                break
            if index not in (PAD, BOS):
                kept.append(int(index))
        return self._join(kept)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """One readable label for each id, specials included: the tick labels of a plot."""
        return [self.vocabulary.token_of(int(index)) for index in ids]

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The tokenizer as JSON values, which ``tokenizer_from_json`` reads."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The tokenizer that ``to_json`` described."""

    @abstractmethod
    def _join(self, ids: list[int]) -> str:
        """The text of ids that hold no special but ``UNK``."""


class _TableTokenizer(Tokenizer):
    """A tokenizer whose tokens are pieces of the text as they stand, looked up in a table."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @staticmethod
    @abstractmethod
    def split(text: str) -> list[str]:
        """The pieces of ``text``."""

    @classmethod
    def train(cls, texts: Iterable[str], size: int | None = None, min_count: int = 1) -> Self:
        """Keep the most frequent tokens, all if ``size`` is None, that occur at least ``min_count`` times."""
        return cls(Vocabulary.build(map(cls.split, texts), max_size=size, min_count=min_count))

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.id_of(token) for token in self.split(text)]

    def unknown(self, text: str) -> list[str]:
        """The tokens of ``text`` that the vocabulary lacks, each once, in their order."""
        return [token for token in dict.fromkeys(self.split(text)) if self.vocabulary.id_of(token) == UNK]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "tokens": list(self.vocabulary.tokens)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        tokens = data["tokens"]
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise TypeError("'tokens' is not a list of strings")
        return cls(Vocabulary(tokens))


class WordTokenizer(_TableTokenizer):
    """Words between white space, numbered by a `vocabulary`. Decoding puts one blank between two words."""

    kind = "words"

    @staticmethod
    def split(text: str) -> list[str]:
        """The words of ``text``."""
        return text.split()

    def _join(self, ids: list[int]) -> str:
        return " ".join(self.tokens(ids))


class CharacterTokenizer(_TableTokenizer):
    """Characters, blanks included, numbered by a `vocabulary`: decoding gives back exactly what was encoded."""

    kind = "characters"

    @staticmethod
    def split(text: str) -> list[str]:
        """The characters of ``text``."""
        return list(text)

    def _join(self, ids: list[int]) -> str:
        return "".join(self.tokens(ids))


class BytePairTokenizer(Tokenizer):
    """Byte-pair encoding of UTF-8, by the ``tokenizers`` package: any text encodes, and decodes exactly.

    Starting from the 256 bytes, the most frequent neighbours are merged into a new token until the
    vocabulary is full (Sennrich, Haddow and Birch, "Neural machine translation of rare words with subword
    units", 2016). The package numbers its tokens from 0 and has no specials, so no text encodes to one; this
    class adds four to its ids.
    """

    kind = "bpe"
    DEFAULT_SIZE = 8000
    SMALLEST_SIZE = len(SPECIALS) + 256

    def __init__(self, merges: Any) -> None:
        """Wrap ``merges``, a trained byte-level ``tokenizers.Tokenizer``; usually called by ``train``."""
        self._merges = merges
        self._decoder = require("tokenizers", "byte-pair encoding").decoders.ByteLevel()
        tokens = [merges.id_to_token(index) for index in range(merges.get_vocab_size())]
        if None in tokens:
            raise ValueError(f"the ids of {len(tokens):,} tokens are not 0 to {len(tokens) - 1:,}")
        self.vocabulary = Vocabulary(tokens)

    @classmethod
    def train(cls, texts: Iterable[str], size: int | None = None) -> Self:
        """Learn merges until there are ``size`` tokens (8,000 if None), specials included, or no more pairs.

        Raises:
            ValueError: ``size`` is less than 260, which the specials and the 256 bytes need.
            ImportError: the package ``tokenizers`` is not installed.
        """
        size = cls.DEFAULT_SIZE if size is None else size
        if size < cls.SMALLEST_SIZE:
            raise ValueError(
                f"BytePairTokenizer.train: size={size} is too small; the 256 bytes and {len(SPECIALS)} "
                f"specials need {cls.SMALLEST_SIZE}"
            )
        package = require("tokenizers", "byte-pair encoding")
        merges = package.Tokenizer(package.models.BPE())
        # Without a blank before the first word: decoding could not tell it from one of the text.
        merges.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)
        # Each merge joins two places of the text: there are `most` tokens, or `size` if the first texts suffice for it.
        first, most, texts = list[str](), cls.SMALLEST_SIZE, iter(texts)
        for text in texts:
            first.append(text)
            most += len(text.encode())
            if most >= size:
                break
        trainer = package.trainers.BpeTrainer(
            vocab_size=min(size, most) - len(SPECIALS),  # it allocates memory for all of them
            initial_alphabet=package.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        merges.train_from_iterator(chain(first, texts), trainer)
        return cls(merges)

    def encode(self, text: str) -> list[int]:
        """The token ids of ``text``; ``UNK`` never occurs."""
        return [index + len(SPECIALS) for index in self._merges.encode(text).ids]

    def _join(self, ids: list[int]) -> str:
        text: list[str] = []
        run: list[str] = []  # a character's bytes may lie in several tokens, so a run is decoded as a whole
        for index in ids:
            token = self.vocabulary.token_of(index)
            if index == UNK:
                text += [self._decoder.decode(run), token]
                run = []
            else:
                run.append(token)
        return "".join([*text, self._decoder.decode(run)])

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The text of each token; a token with part of a character has the package's symbols for its bytes."""
        labels = []
        for index in ids:
            token = self.vocabulary.token_of(int(index))
            text = token if index < len(SPECIALS) else self._decoder.decode([token])
            labels.append(token if "\N{REPLACEMENT CHARACTER}" in text else text)
        return labels

    def to_json(self) -> dict[str, Any]:
        """The kind, and the package's own JSON."""
        return {"kind": self.kind, "tokenizers": json.loads(self._merges.to_str())}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The tokenizer that ``to_json`` described."""
        package = require("tokenizers", "byte-pair encoding")
        text = json.dumps(data["tokenizers"], ensure_ascii=False)
        try:
            merges = package.Tokenizer.from_str(text)
        except Exception as error:  # the package raises no narrower class
            raise ValueError(f"not a description of a tokenizer: {error}") from error
        return cls(merges)


_KINDS: dict[str, type[Tokenizer]] = {
    cls.kind: cls for cls in (WordTokenizer, CharacterTokenizer, BytePairTokenizer)
}


def tokenizer_from_json(data: dict[str, Any]) -> Tokenizer:
    """The tokenizer that ``Tokenizer.to_json`` described.

    Raises:
        ValueError: ``data`` does not describe a tokenizer.
        ImportError: it is a byte-pair tokenizer, and the package ``tokenizers`` is not installed.
    """
    try:
        return _kind(data["kind"]).from_json(data)
    except (KeyError, TypeError) as error:
        raise ValueError(f"tokenizer_from_json: not the description of a tokenizer ({error!r})") from error


def build_tokenizers(
    kind: str,
    source_texts: Iterable[str],
    target_texts: Iterable[str],
    shared: bool = False,
    size: int | None = None,
) -> tuple[Tokenizer, Tokenizer]:
    """Train the tokenizers of both sides; with ``shared``, one on both texts, returned twice.

    Args:
        kind: ``"words"``, ``"characters"`` or ``"bpe"``.
        source_texts, target_texts: what to learn from, of each side.
        size: the largest vocabulary, specials included. None keeps every word or character; for ``"bpe"``,
            8,000.

    Raises:
        ValueError: unknown ``kind``, or ``size`` too small for it.
        ImportError: ``kind`` is ``"bpe"``, and the package ``tokenizers`` is not installed.
    """
    tokenizer = _kind(kind)
    if shared:
        both = tokenizer.train(chain(source_texts, target_texts), size)
        return both, both
    return tokenizer.train(source_texts, size), tokenizer.train(target_texts, size)


def _kind(name: str) -> type[Tokenizer]:
    if name not in _KINDS:
        raise ValueError(f"unknown kind of tokenizer {name!r}; there are {', '.join(_KINDS)}")
    return _KINDS[name]
