"""Vocabulary: ids, order, limits, and specials that no text can reach."""

import pytest

from transformer.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary


def test_specials_come_first_and_no_text_reaches_them():
    vocabulary = Vocabulary(["b", "a"])
    assert vocabulary.tokens == ("<pad>", "<bos>", "<eos>", "<unk>", "b", "a")
    assert [PAD, BOS, EOS, UNK] == [0, 1, 2, 3]
    assert len(vocabulary) == 6
    assert vocabulary.token_of(EOS) == "<eos>"
    assert [vocabulary.id_of(token) for token in ("a", "z", "", *SPECIALS)] == [5, *[UNK] * 6]


def test_build_orders_by_count_then_by_text_and_has_limits():
    lists = [["b", "c", "a"], ["a", "b", "<eos>", "<eos>", "<eos>"], ["d", "a"]]
    assert Vocabulary.build(lists).tokens[4:] == ("a", "b", "c", "d")
    assert Vocabulary.build([["x"], ["y", "y"]]).tokens[4:] == ("y", "x")
    assert Vocabulary.build(lists, max_size=6).tokens[4:] == ("a", "b")
    assert len(Vocabulary.build(lists, max_size=4)) == 4


def test_mistakes_are_named():
    for index in (-1, 5):
        with pytest.raises(IndexError, match=rf"id {index} .* 0 to 4"):
            Vocabulary(["a"]).token_of(index)
    with pytest.raises(ValueError, match="'a' occurs 2 times"):
        Vocabulary(["a", "b", "a"])
    with pytest.raises(ValueError, match="'<pad>' is the name of a special"):
        Vocabulary(["a", "<pad>"])
    with pytest.raises(ValueError, match="max_size=3"):
        Vocabulary.build([["a"]], max_size=3)
