"""Tokenizers: exact round trips, specials out of reach of any text, JSON, and shared vocabularies."""

import json
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transformer.data.parallel_text import DataError
from transformer.data.tokenizer import (
    BytePairTokenizer,
    CharacterTokenizer,
    WordTokenizer,
    build_tokenizers,
    load_tokenizer,
    tokenizer_from_json,
)
from transformer.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK

TEXTS = ["the cat sat on the mat .", "彼 は つら い 人生 を 送 っ た 。", "<pad> the <eos>", "日本語の文。"]
KINDS = ["words", "characters", "bpe"]


def trained(kind, texts=TEXTS, size=None):
    if kind == "bpe":
        pytest.importorskip("tokenizers", reason="byte-pair encoding needs the data extra")
        size = size or 300
    return build_tokenizers(kind, texts, [], shared=True, size=size)[0]


# Hypothesis draws surrogates only if told to; a lone one is no character and has no UTF-8.
@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("  two  blanks\tand a tab, 鬱 is not in the training text 🙂👩‍🚀")
def test_characters_and_byte_pairs_round_trip_any_text(text):
    for tokenizer in (CharacterTokenizer.train([text]), byte_pairs()):
        ids = tokenizer.encode(text)
        assert not set(ids) & {PAD, BOS, EOS, UNK}
        assert tokenizer.decode(ids) == text


@cache
def byte_pairs():
    return trained("bpe", ["lower lowest low"] * 5, size=264)


def test_bpe_merges_what_is_frequent_within_its_size():
    """It takes no memory for tokens that no text has, and learns from all texts of an iterator."""
    assert len(BytePairTokenizer.train(TEXTS, 10**12).vocabulary) < 1000
    whole, again = (BytePairTokenizer.train(kind(["a", "whale " * 20, *["theme"] * 9]), 267)
                    for kind in (list, iter))
    assert again.to_json() == whole.to_json()
    assert len(whole.vocabulary) == 267
    assert (len(whole.encode("whale")), len(whole.encode("theme"))) == (1, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_specials_in_texts_and_in_ids(kind):
    """No text becomes a special; decoding stops at the end of the sentence, drops padding and shows the unknown."""
    tokenizer = trained(kind)
    for special in SPECIALS:
        assert not set(tokenizer.encode(f"{special} the {special}{special} cat")) & {PAD, BOS, EOS}
    the, cat = tokenizer.encode("the"), tokenizer.encode("cat")
    blank = " " if kind == "words" else ""
    assert tokenizer.decode(np.array([BOS, *the, UNK, PAD, *cat, EOS, *the, PAD])) == f"the{blank}<unk>{blank}cat"
    assert tokenizer.decode([]) == ""
    with pytest.raises(IndexError, match="is not among the ids"):
        tokenizer.decode([len(tokenizer.vocabulary)])
    assert (UNK in tokenizer.encode("the Xylophon")) == (kind != "bpe")


@pytest.mark.parametrize("data", [
    {"kind": "words"}, {"kind": []}, {"kind": "characters", "tokens": ["a", "a"]},
    {"kind": "words", "tokens": ["a", "<pad>"]}, {"kind": "bpe", "tokenizers": {"version": "1.0"}}, None], ids=str)
def test_a_foreign_description_is_a_value_error(data):
    with pytest.raises(ValueError, match=r"tokenizer|occurs 2 times"):
        tokenizer_from_json(data)


def test_shared_and_separate_vocabularies_and_their_limits():
    """In the order of counts, then of the texts; a text that spells a special has no part in it."""
    tokens = build_tokenizers("words", ["b c a", "a b <eos> <eos> <eos>", "d a"], [])[0].vocabulary.tokens
    assert tokens == ("<pad>", "<bos>", "<eos>", "<unk>", "a", "b", "c", "d")
    source, target = build_tokenizers("words", ["a b"], ["x y z"], shared=True)
    assert source is target
    for texts, size, expected in ((("a b", "x y z"), None, ["ab", "xyz"]), (("a a b", "x x y z"), 5, ["a", "x"])):
        found = build_tokenizers("words", *([text] for text in texts), size=size)
        assert ["".join(tokenizer.vocabulary.tokens[4:]) for tokenizer in found] == expected


def test_mistakes_are_named(monkeypatch, tmp_path):
    for call, message in ((lambda: build_tokenizers("syllables", [], []), "'syllables'"),
                          (lambda: WordTokenizer.train(TEXTS, 3), "size=3"),
                          (lambda: BytePairTokenizer.train(TEXTS, 259), r"size=259 .* 260")):
        with pytest.raises(ValueError, match=message):
            call()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    path = tmp_path / "tokenizer.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ImportError, match=r"'tokenizers'.*\[data\]"):
        load_tokenizer(path)


ODD_TEXTS = ["the cat", " the  dog\x1fsat\u2028on\x85it ", "<eos> the<pad>cat <unk>", "日本語\n文。 a\ufeffb 🙂", ""]


@pytest.mark.parametrize("kind", KINDS)
def test_copies_by_json_and_by_a_file_for_hugging_face_have_the_same_ids_and_texts(kind, tmp_path):
    package = pytest.importorskip("tokenizers", reason="of the data extra")
    tokenizer, path = trained(kind), tmp_path / "tokenizer.json"
    path.write_text(tokenizer.to_hugging_face(), encoding="utf-8")
    theirs, loaded = package.Tokenizer.from_file(str(path)), load_tokenizer(path)
    copies = [loaded, *(tokenizer_from_json(json.loads(json.dumps(one.to_json()))) for one in (tokenizer, loaded))]
    assert [theirs.token_to_id(special) for special in SPECIALS] == [PAD, BOS, EOS, UNK]
    assert all(copy.vocabulary.tokens == tokenizer.vocabulary.tokens for copy in copies)
    assert type(copies[1]) is type(tokenizer)
    for text in [*TEXTS, *ODD_TEXTS]:
        ids = tokenizer.encode(text)
        for copy in copies:
            assert copy.encode(text) == ids
            assert copy.decode([BOS, *ids, EOS, EOS]) == tokenizer.decode(ids)
        if "<" not in text:  # the package finds specials in a text
            assert theirs.encode(text).ids == ids
        if UNK not in ids:  # which the package leaves out
            assert theirs.decode([BOS, *ids, EOS]) == tokenizer.decode(ids)
    assert json.loads(copies[2].to_hugging_face()) == json.loads(theirs.to_str())


def foreign(kind):
    """A tokenizer of the package, with specials, template, truncation and padding of its own."""
    package = pytest.importorskip("tokenizers", reason="of the data extra")
    models, parts, specials = package.models, package.pre_tokenizers, ["<pad>", "</s>", "[UNK]"]
    split, options, model_options = {
        "BPE": ("ByteLevel", {"initial_alphabet": parts.ByteLevel.alphabet()}, {"dropout": 0.5}),
        "Unigram": ("Metaspace", {"unk_token": "[UNK]"}, {}), "WordPiece": ("Whitespace", {}, {"unk_token": "[UNK]"}),
    }[kind]
    found = package.Tokenizer(getattr(models, kind)(**model_options))
    found.pre_tokenizer, found.normalizer = getattr(parts, split)(), package.normalizers.Lowercase()
    decoder = getattr(package.decoders, kind if split == "Whitespace" else split, None)
    if decoder:
        found.decoder = decoder()
    trainer = getattr(package.trainers, f"{kind.title() if kind == 'BPE' else kind}Trainer")
    found.train_from_iterator(TEXTS * 20, trainer(special_tokens=specials, show_progress=False, **options))
    found.post_processor = package.processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    found.enable_truncation(4)
    found.enable_padding(length=9)
    return found


@pytest.mark.parametrize("kind", ["BPE", "Unigram", "WordPiece"])
def test_any_tokenizer_of_hugging_face(kind, tmp_path):
    theirs, path = foreign(kind), tmp_path / "file"
    theirs.save(str(path))
    loaded = load_tokenizer(path)
    copy = tokenizer_from_json(json.loads(json.dumps(loaded.to_json())))
    theirs.no_truncation()
    theirs.no_padding()
    if kind == "BPE":
        theirs.model.dropout = None
    assert (copy.kind, len(loaded.vocabulary)) == ("hugging-face", 4 + theirs.get_vocab_size())
    for text in ["The cat sat on the mat .", "彼 は つら い", "a </s> cat <eos> <pad> " * 9]:
        known = theirs.encode(text, add_special_tokens=False).ids
        expected = [UNK if index == theirs.token_to_id("[UNK]") else index + 4 for index in known]
        assert loaded.encode(text) == copy.encode(text) == expected
        assert loaded.decode([BOS, *expected, EOS]) == theirs.decode(known, skip_special_tokens=False).replace(
            "[UNK]", "<unk>")
        assert len(loaded.tokens(expected)) == len(expected)
    ids = loaded.encode("the 鬱 鬱")
    assert (UNK in ids) == (kind != "BPE") == bool(loaded.unknown("the 鬱 鬱"))
    assert set(loaded.unknown("the 鬱 鬱")) <= {"鬱"}
    with pytest.raises(IndexError, match="is not among the ids"):
        loaded.decode([len(loaded.vocabulary)])
    with pytest.raises(ValueError, match="specials"):
        loaded.to_hugging_face()


@pytest.mark.parametrize("data", [
    None, b"[" * 100_000, b"[1]", b"caf\xe9",
    b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}',
    b'{"model": {"type": "WordLevel", "vocab": {"a": 4000000000}, "unk_token": "a"}}',
    b'{"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"}}',
    b'{"model": {"type": "Unigram", "vocab": [["a", 0]], "unk_id": null}}'], ids=str)
def test_what_is_no_tokenizer_file(data, tmp_path):
    pytest.importorskip("tokenizers", reason="of the data extra")
    path = tmp_path / "tokenizer.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(DataError, match=rf"^[^\n]*{path}[^\n]*$"):
        load_tokenizer(path)
