"""Tokenizers: exact round trips, specials out of reach of any text, JSON, and shared vocabularies."""

import json
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transformer.data.tokenizer import (
    BytePairTokenizer,
    CharacterTokenizer,
    WordTokenizer,
    build_tokenizers,
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
ordinary_text = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1)))
@example(["日本", "語", "a\ufeffb"])
def test_words_round_trip(words):
    text = " ".join(words)
    assert WordTokenizer.train([text]).decode(WordTokenizer.train([text]).encode(text)) == text


@given(ordinary_text)
def test_characters_round_trip_exactly(text):
    tokenizer = CharacterTokenizer.train([text])
    ids = tokenizer.encode(text)
    assert len(ids) == len(text)
    assert tokenizer.decode(ids) == text


def test_bpe_round_trips_any_text_exactly():
    tokenizer = trained("bpe")

    @given(ordinary_text)
    def check(text):
        ids = tokenizer.encode(text)
        assert not set(ids) & {PAD, BOS, EOS, UNK}
        assert tokenizer.decode(ids) == text

    check()
    for text in [*TEXTS, "  two  blanks\tand a tab ", "鬱 is not in the training text", "🙂👩‍🚀", "é é"]:
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_bpe_merges_what_is_frequent_within_its_size():
    texts = ["lower lowest low"] * 5
    tokenizer = trained("bpe", texts, size=264)
    assert len(tokenizer.vocabulary) == 264
    assert tokenizer.vocabulary.tokens[:4] == SPECIALS
    assert len(tokenizer.encode("low")) == 1
    assert trained("bpe", texts, size=264).to_json() == tokenizer.to_json()


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_becomes_a_special(kind):
    tokenizer = trained(kind)
    for special in SPECIALS:
        for text in (special, f"the {special} cat", special * 2):
            assert not set(tokenizer.encode(text)) & {PAD, BOS, EOS}


@pytest.mark.parametrize("kind", KINDS)
def test_decode_stops_at_eos_drops_padding_and_shows_unknown(kind):
    tokenizer = trained(kind)
    the, cat = tokenizer.encode("the"), tokenizer.encode("cat")
    blank = " " if kind == "words" else ""
    assert tokenizer.decode([BOS, *the, PAD, *cat, EOS, *the, PAD]) == f"the{blank}cat"
    assert tokenizer.decode([*the, UNK, *cat]) == f"the{blank}<unk>{blank}cat"
    assert tokenizer.decode(np.array([BOS, *the, EOS])) == "the"
    assert tokenizer.decode([]) == ""
    with pytest.raises(IndexError, match="is not among the ids"):
        tokenizer.decode([len(tokenizer.vocabulary)])


def test_unknown_words_and_characters_encode_as_unk():
    assert trained("words").encode("the dog sat")[1] == UNK
    assert trained("characters").encode("the X")[4] == UNK
    assert trained("words").decode(trained("words").encode("the dog sat")) == "the <unk> sat"


def test_labels_for_plots():
    assert trained("words").tokens(np.array([BOS, 4, UNK])) == ["<bos>", "the", "<unk>"]
    assert trained("characters").tokens(trained("characters").encode("a 日")) == ["a", " ", "日"]
    tokenizer = trained("bpe", ["日本 the cat"] * 20, size=275)
    assert tokenizer.tokens([BOS, *tokenizer.encode("日本 the cat"), EOS]) == [
        "<bos>", "日本", " the", " cat", "<eos>",
    ]  # fmt: skip
    labels = tokenizer.tokens(tokenizer.encode("鬱"))
    assert len(labels) == 3
    assert all("\N{REPLACEMENT CHARACTER}" not in label for label in labels)


@pytest.mark.parametrize("kind", KINDS)
def test_json_round_trip(kind):
    tokenizer = trained(kind)
    data = json.loads(json.dumps(tokenizer.to_json()))
    copy = tokenizer_from_json(data)
    assert type(copy) is type(tokenizer)
    assert copy.vocabulary.tokens == tokenizer.vocabulary.tokens
    text = "the cat 日本語 <eos> zzz"
    assert copy.encode(text) == tokenizer.encode(text)
    assert copy.decode(copy.encode(text)) == tokenizer.decode(tokenizer.encode(text))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"kind": "words"},
        {"kind": "syllables"},
        {"kind": []},
        {"kind": "words", "tokens": "abc"},
        {"kind": "words", "tokens": [1, 2]},
        {"kind": "characters", "tokens": ["a", "a"]},
        {"kind": "bpe", "tokenizers": {"version": "1.0"}},
        [],
        None,
    ],
)
def test_a_foreign_description_is_a_value_error(data):
    if isinstance(data, dict) and data.get("kind") == "bpe":
        pytest.importorskip("tokenizers", reason="byte-pair encoding needs the data extra")
    with pytest.raises(ValueError, match=r"tokenizer|occurs"):
        tokenizer_from_json(data)


def test_build_tokenizers_shared_and_separate():
    source, target = build_tokenizers("words", ["a b"], ["x y z"], shared=False, size=None)
    assert set(source.vocabulary.tokens[4:]) == {"a", "b"}
    assert set(target.vocabulary.tokens[4:]) == {"x", "y", "z"}
    source, target = build_tokenizers("words", ["a b"], ["x y z"], shared=True, size=None)
    assert source is target
    assert set(source.vocabulary.tokens[4:]) == {"a", "b", "x", "y", "z"}
    source, target = build_tokenizers("characters", ["aab"], ["xxyz"], shared=False, size=5)
    assert (source.vocabulary.tokens[4:], target.vocabulary.tokens[4:]) == (("a",), ("x",))


def test_min_count():
    assert WordTokenizer.train(["a a b"], min_count=2).vocabulary.tokens[4:] == ("a",)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="kind of tokenizer 'syllables'; there are words, characters, bpe"):
        build_tokenizers("syllables", [], [], shared=False, size=None)
    with pytest.raises(ValueError, match=r"size=259 is too small.* need 260"):
        BytePairTokenizer.train(TEXTS, 259)


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"the package 'tokenizers': .*pip install -e '\.\[data\]'"):
        BytePairTokenizer.train(TEXTS)
