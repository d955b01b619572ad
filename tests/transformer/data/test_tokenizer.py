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


def test_words_and_what_is_unknown():
    text = "日本 語 a\ufeffb"
    assert WordTokenizer.train([text]).decode(WordTokenizer.train([text]).encode(text)) == text
    assert trained("words").encode("the dog sat")[1] == UNK
    assert trained("characters").encode("the X")[4] == UNK


# Hypothesis draws surrogates only if told to; a lone one is no character and has no UTF-8.
ordinary_text = st.text(st.characters(exclude_categories=["Cs"]))


@given(ordinary_text)
def test_characters_round_trip_exactly(text):
    tokenizer = CharacterTokenizer.train([text])
    assert len(tokenizer.encode(text)) == len(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_bpe_takes_no_memory_for_tokens_that_no_text_has():
    assert len(BytePairTokenizer.train(TEXTS, 10**12).vocabulary) < 1000


def test_bpe_learns_from_all_texts_of_an_iterator():
    """Those from which it takes the size, and those after them."""
    texts = ["a", *["theme"] * 9, "b", *["whale"] * 20]
    whole = BytePairTokenizer.train(texts, 266)
    assert BytePairTokenizer.train(iter(texts), 266).to_json() == whole.to_json()
    assert len(whole.encode("whale")) == 1 < len(whole.encode("theme"))


def test_bpe_round_trips_any_text_exactly_and_merges_what_is_frequent_within_its_size():
    tokenizer = trained("bpe", ["lower lowest low"] * 5, size=264)
    assert len(tokenizer.vocabulary) == 264
    assert tokenizer.vocabulary.tokens[:4] == SPECIALS
    assert len(tokenizer.encode("low")) == 1

    @given(ordinary_text)
    @example("  two  blanks\tand a tab, 鬱 is not in the training text 🙂👩‍🚀")
    def check(text):
        ids = tokenizer.encode(text)
        assert not set(ids) & {PAD, BOS, EOS, UNK}
        assert tokenizer.decode(ids) == text

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_specials_in_texts_and_in_ids(kind):
    """No text becomes a special; decoding stops at the end of the sentence, drops padding and shows the unknown."""
    tokenizer = trained(kind)
    for special in SPECIALS:
        assert not set(tokenizer.encode(f"{special} the {special}{special} cat")) & {PAD, BOS, EOS}
    the, cat = tokenizer.encode("the"), tokenizer.encode("cat")
    blank = " " if kind == "words" else ""
    assert tokenizer.decode([BOS, *the, PAD, *cat, EOS, *the, PAD]) == f"the{blank}cat"
    assert tokenizer.decode([*the, UNK, *cat]) == f"the{blank}<unk>{blank}cat"
    assert tokenizer.decode(np.array([BOS, *the, EOS])) == "the"
    assert tokenizer.decode([]) == ""
    with pytest.raises(IndexError, match="is not among the ids"):
        tokenizer.decode([len(tokenizer.vocabulary)])


@pytest.mark.parametrize("kind", KINDS)
def test_json_round_trip(kind):
    tokenizer = trained(kind)
    copy = tokenizer_from_json(json.loads(json.dumps(tokenizer.to_json())))
    assert type(copy) is type(tokenizer)
    assert copy.vocabulary.tokens == tokenizer.vocabulary.tokens
    assert copy.encode("the cat 日本語 <eos> zzz") == tokenizer.encode("the cat 日本語 <eos> zzz")


@pytest.mark.parametrize("data", [
    {"kind": "words"}, {"kind": "syllables"}, {"kind": []}, {"kind": "words", "tokens": [1, 2]},
    {"kind": "characters", "tokens": ["a", "a"]}, {"kind": "bpe", "tokenizers": {"version": "1.0"}}, None], ids=str)
def test_a_foreign_description_is_a_value_error(data):
    with pytest.raises(ValueError, match=r"tokenizer|occurs"):
        tokenizer_from_json(data)


def test_labels_for_plots():
    assert trained("words").tokens(np.array([BOS, 4, UNK])) == ["<bos>", "the", "<unk>"]
    tokenizer = trained("bpe", ["日本 the cat"] * 20, size=275)
    assert tokenizer.tokens([BOS, *tokenizer.encode("日本 the")]) == ["<bos>", "日本", " the"]
    assert all("\N{REPLACEMENT CHARACTER}" not in label for label in tokenizer.tokens(tokenizer.encode("鬱")))


def test_shared_and_separate_vocabularies_and_their_limits():
    source, target = build_tokenizers("words", ["a b"], ["x y z"])
    assert (source.vocabulary.tokens[4:], target.vocabulary.tokens[4:]) == (("a", "b"), ("x", "y", "z"))
    source, target = build_tokenizers("words", ["a b"], ["x y z"], shared=True)
    assert source is target
    assert set(source.vocabulary.tokens[4:]) == {"a", "b", "x", "y", "z"}
    source, target = build_tokenizers("characters", ["aab"], ["xxyz"], size=5)
    assert (source.vocabulary.tokens[4:], target.vocabulary.tokens[4:]) == (("a",), ("x",))
    assert WordTokenizer.train(["a a b"], min_count=2).vocabulary.tokens[4:] == ("a",)


def test_mistakes_are_named(monkeypatch):
    with pytest.raises(ValueError, match="'syllables'; there are words, characters, bpe"):
        build_tokenizers("syllables", [], [])
    with pytest.raises(ValueError, match=r"size=259 .* 260"):
        BytePairTokenizer.train(TEXTS, 259)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"'tokenizers'.*\[data\]"):
        BytePairTokenizer.train(TEXTS)
