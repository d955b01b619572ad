"""Tokenizers: text to token ids and back, by words, characters, byte pairs, or as a Hugging Face file says."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from itertools import chain, takewhile
from typing import Any, ClassVar, Self

from transformer.data.extras import require
from transformer.data.parallel_text import DataError, Path
from transformer.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary


class Tokenizer(ABC):
    """The interface of every tokenizer; ``kind`` is its name in files and on the command line."""

    kind: ClassVar[str]
    vocabulary: Vocabulary

    @classmethod
    def train(cls, texts: Iterable[str], size: int | None = None) -> Self:
        """Learn a vocabulary of at most ``size`` tokens, the four specials included, from ``texts``.

        Raises:
            ValueError: the tokenizer comes from a file.
        """
        raise ValueError(f"a tokenizer of kind {cls.kind!r} is loaded, not trained")

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The token ids of ``text``, without ``BOS`` and ``EOS``; of the specials, only ``UNK`` can occur."""

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """The parts of ``text`` that the ids of `encode` stand for."""

    def unknown(self, text: str) -> list[str]:
        """The parts of ``text`` that are ``UNK`` to the vocabulary, each once, in their order."""
        parts = zip(self.split(text), self.encode(text), strict=True)
        return list(dict.fromkeys(part for part, index in parts if index == UNK))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids`` up to the first ``EOS``, less ``PAD`` and ``BOS``; ``UNK`` shows as ``<unk>``.

        Raises:
            IndexError: an id is not in the vocabulary.
        """
        sentence = takewhile(lambda index: index != EOS, ids)
        return self._join([int(index) for index in sentence if index not in (PAD, BOS)])

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

    def to_hugging_face(self) -> str:
        """The text of a Hugging Face ``tokenizer.json`` with the ids of this tokenizer, the four specials included.

        In that file the specials are added tokens, which the package ``tokenizers`` finds in a text that spells them
        out; `load_tokenizer` switches that off.

        Raises:
            ValueError: the tokenizer was loaded from a file with other specials, and so with other ids.
        """
        raise ValueError("a tokenizer.json with these ids would need specials that the loaded one lacks")

    @abstractmethod
    def _join(self, ids: list[int]) -> str:
        """The text of ids that hold no special but ``UNK``."""


class _TableTokenizer(Tokenizer):
    """A tokenizer whose tokens are pieces of the text as they stand, looked up in a table."""

    split: ClassVar[staticmethod[..., list[str]]]
    between: ClassVar[str]  # two pieces, in decoding
    _in_file: ClassVar[tuple[str, str, Any]]  # of a tokenizer.json: a pattern, what becomes of its matches, the decoder

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @classmethod
    def train(cls, texts: Iterable[str], size: int | None = None) -> Self:
        """Number the tokens by falling frequency, equally frequent ones by their text; keep all if ``size`` is None.

        Tokens spelt like a special are skipped.

        Raises:
            ValueError: ``size`` leaves no room for the four specials.
        """
        if size is not None and size < len(SPECIALS):
            raise ValueError(f"{cls.__name__}.train: size={size} has no room for the {len(SPECIALS)} specials")
        counts = Counter(token for text in texts for token in cls.split(text))
        kept = sorted(counts.keys() - SPECIALS, key=lambda token: (-counts[token], token))
        return cls(Vocabulary(kept if size is None else kept[:size - len(SPECIALS)]))

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.id_of(token) for token in self.split(text)]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "tokens": list(self.vocabulary.tokens)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(Vocabulary(data["tokens"]))

    def to_hugging_face(self) -> str:
        pattern, behavior, decoder = self._in_file
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False}
        model = {"type": "WordLevel", "unk_token": SPECIALS[UNK]}
        return _tokenizer_json({"pre_tokenizer": split, "decoder": decoder, "model": model}, self.vocabulary)

    def _join(self, ids: list[int]) -> str:
        return self.between.join(self.tokens(ids))


class WordTokenizer(_TableTokenizer):
    """Words between white space, numbered by a `vocabulary`. Decoding puts one blank between two words."""

    kind, split, between = "words", staticmethod(str.split), " "
    _in_file = r"[\s\x1c-\x1f]+", "Removed", None  # the white space of str.split


class CharacterTokenizer(_TableTokenizer):
    """Characters, blanks included, numbered by a `vocabulary`: decoding gives back exactly what was encoded."""

    kind, split, between = "characters", staticmethod(list[str]), ""
    _in_file = r"[\s\S]", "Isolated", {"type": "Fuse"}


class HuggingFaceTokenizer(Tokenizer):
    """A tokenizer of the package ``tokenizers``, with its own model, normalizer, pre-tokenizer and decoder.

    Our four specials come first, and its ids after them. Its unknown token is our ``UNK``. If its first tokens are our
    specials, as in a file of `to_hugging_face`, its ids are ours; then a text that spells a special out has none.
    It encodes whole texts, without the special tokens that a template adds, and the same text alike every time.
    """

    kind = "hugging-face"

    def __init__(self, package: Any) -> None:
        """Wrap ``package``, a ``tokenizers.Tokenizer``; usually called by `load_tokenizer`."""
        package.no_truncation()
        package.no_padding()
        if hasattr(package.model, "dropout"):
            package.model.dropout = None  # byte-pair encoding may leave out merges at random
        tokens = [package.id_to_token(index) for index in range(package.get_vocab_size())]
        if None in tokens:
            raise ValueError(f"the ids of {len(tokens):,} tokens are not 0 to {len(tokens) - 1:,}")
        self._own = tuple(tokens[:len(SPECIALS)]) == SPECIALS
        package.encode_special_tokens = self._own  # as other text
        rest = tokens[len(SPECIALS):] if self._own else tokens
        self._pieces = [*SPECIALS, *rest]  # by our ids
        # Ours for each of its ids.
        self._ids = [UNK] * (len(tokens) - len(rest)) + [*range(len(SPECIALS), len(self._pieces))]
        # A vocabulary has the names of our specials once.
        self.vocabulary = Vocabulary([f"{token}#{index}" if token in SPECIALS else token
                                      for index, token in enumerate(rest)])
        model = json.loads(package.to_str())["model"]
        token = model.get("unk_token")
        unknown = model.get("unk_id") if token is None else package.token_to_id(token)
        if unknown is not None:
            self._ids[unknown] = UNK
        self._package, self._decoder = package, package.decoder
        if not self.encode("\N{EGYPTIAN HIEROGLYPH D010}"):  # or the package raises its own error, now and not later
            raise ValueError("no token stands for what is unknown")

    def encode(self, text: str) -> list[int]:
        """The token ids of ``text``; ``UNK`` only where the tokenizer has its unknown token, and never for bytes."""
        return [self._ids[index] for index in self._package.encode(text, add_special_tokens=False).ids]

    def split(self, text: str) -> list[str]:
        """The parts of ``text`` that the ids of `encode` stand for."""
        offsets = self._package.encode(text, add_special_tokens=False).offsets
        return [text[start:end] for start, end in offsets]

    def _piece(self, index: int) -> str:
        """The token with one of our ids, as the decoder reads it."""
        self.vocabulary.token_of(index)  # IndexError if there is none
        return self._pieces[index]

    def _join(self, ids: list[int]) -> str:
        pieces = [self._piece(index) for index in ids]
        return self._decoder.decode(pieces) if self._decoder else " ".join(pieces)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The text of each token; a token with part of a character has the package's symbols for its bytes."""
        labels = []
        for index in map(int, ids):
            piece, text = self._piece(index), self._join([index])
            labels.append(piece if index < len(SPECIALS) or "\N{REPLACEMENT CHARACTER}" in text else text)
        return labels

    def to_json(self) -> dict[str, Any]:
        """The kind, and the package's own JSON."""
        return {"kind": self.kind, "tokenizers": json.loads(self._package.to_str())}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The tokenizer that ``to_json`` described."""
        package = require("tokenizers", f"a tokenizer of kind {cls.kind!r}")
        text = json.dumps(data["tokenizers"], ensure_ascii=False)
        try:
            return cls(package.Tokenizer.from_str(text))
        except Exception as error:  # the package raises no narrower class
            raise ValueError(f"not a description of a tokenizer: {error}") from error

    def to_hugging_face(self) -> str:
        """The text of the file, if its specials are ours; see `Tokenizer.to_hugging_face`."""
        return self._package.to_str() if self._own else super().to_hugging_face()


class BytePairTokenizer(HuggingFaceTokenizer):
    """Byte-pair encoding of UTF-8, by the ``tokenizers`` package: any text encodes, and decodes exactly.

    Starting from the 256 bytes, the most frequent neighbours are merged into a new token until the
    vocabulary is full (Sennrich, Haddow and Birch, "Neural machine translation of rare words with subword
    units", 2016). The package numbers its tokens from 0 and has no specials, so no text encodes to one.
    """

    kind = "bpe"
    DEFAULT_SIZE = 8000
    SMALLEST_SIZE = len(SPECIALS) + 256

    @classmethod
    def train(cls, texts: Iterable[str], size: int | None = None) -> Self:
        """Learn merges until there are ``size`` tokens (8,000 if None), specials included, or no more pairs.

        There are a million tokens at most.

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
        trainer = package.trainers.BpeTrainer(
            vocab_size=min(size, 10**6) - len(SPECIALS),  # it allocates memory for all of them
            initial_alphabet=package.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        merges.decoder = package.decoders.ByteLevel()
        merges.train_from_iterator(texts, trainer)
        return cls(merges)

    def to_hugging_face(self) -> str:
        """See `Tokenizer.to_hugging_face`."""
        return _tokenizer_json(json.loads(self._package.to_str()), self.vocabulary)


def load_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of the Hugging Face ``tokenizer.json`` at `path`, whatever its model.

    Raises:
        DataError: the file cannot be read, or is not such a file.
        ImportError: the package ``tokenizers`` is not installed.
    """
    try:
        with open(path, "rb") as file:
            return HuggingFaceTokenizer.from_json({"tokenizers": json.load(file)})
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not a tokenizer.json of Hugging Face: {error}") from error


def _tokenizer_json(parts: dict[str, Any], vocabulary: Vocabulary) -> str:
    """The text of a ``tokenizer.json`` with ``parts``, and with ``vocabulary`` as the tokens of its model."""
    added = [{"id": index, "content": special, "special": True, "normalized": False, "single_word": False,
              "lstrip": False, "rstrip": False} for index, special in enumerate(SPECIALS)]
    model = {**parts["model"], "vocab": {token: index for index, token in enumerate(vocabulary.tokens)}}
    return json.dumps({"version": "1.0", **parts, "added_tokens": added, "model": model}, ensure_ascii=False)


_KINDS: dict[str, type[Tokenizer]] = {
    cls.kind: cls for cls in (WordTokenizer, CharacterTokenizer, BytePairTokenizer, HuggingFaceTokenizer)
}


def tokenizer_from_json(data: dict[str, Any]) -> Tokenizer:
    """The tokenizer that ``Tokenizer.to_json`` described.

    Raises:
        ValueError: ``data`` does not describe a tokenizer.
        ImportError: it needs the package ``tokenizers``, which is not installed.
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
        ValueError: unknown ``kind`` or one that is not trained, or ``size`` too small for it.
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
