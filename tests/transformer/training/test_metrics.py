"""Metrics against values worked out by hand."""

import math
import sys

import pytest

from transformer.training.metrics import bleu, bleu_tokenizer, chrf, token_accuracy


def test_tokens_beyond_the_reference_do_not_count():
    assert token_accuracy(["abcd", "bca"], ["ab", "abc"]) == 2 / 5


def test_bleu_by_hand(caplog):
    pytest.importorskip("sacrebleu", reason="BLEU needs the data extra")
    # Precisions 4/5, 3/4, 2/3, 1/2; five words against six: brevity penalty exp(1 - 6/5).
    score, signature = bleu(["the cat sat on a"], ["the cat sat on the mat"])
    assert score == pytest.approx(100 * math.exp(1 - 6 / 5) * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25, rel=1e-9)
    assert "tok:none" in signature
    # Counts are added up over the sentences: 5/10, 4/8, 3/6, 2/4.
    assert bleu(["a b c d e", "v w x y z"], ["a b c d e", "f g h i j"])[0] == pytest.approx(50.0, rel=1e-9)
    bleu(["a b c ."] * 150, ["a b c ."] * 150)
    assert not caplog.records, "tokenized text gives no warning"
    assert bleu(["It is a cat, yes."], ["It is a cat , yes ."], tokenize="13a")[0] == pytest.approx(100.0, rel=1e-9)


@pytest.mark.parametrize(("kind", "references", "expected"), [
    ("words", ["猫がいる。"], "none"),
    ("characters", ["the cat"], "char"),
    ("bpe", ["The cat sat on the mat."], "13a"),
    ("bpe", ["猫がマットの上に座っていた。", "GNU は OS である。"], "char"),
    ("bpe", ["猫 が マット の 上 に 座っ て い た 。"], "13a"),
    ("bpe", ["แมวนั่งอยู่บนเสื่อ และนอนหลับ"], "char"),
    ("bpe", ["고양이가 매트 위에 앉았다."], "13a"),
    ("bpe", ["1 + 1"], "13a"),
])
def test_the_tokenizer_of_bleu_splits_the_script_of_the_references(kind, references, expected):
    assert bleu_tokenizer(kind, references) == expected


def test_chrf_by_hand():
    pytest.importorskip("sacrebleu", reason="chrF needs the data extra")
    # Of "abcd" and "abce": F of 1-grams 3/4, 2-grams 2/3, 3-grams 1/2, 4-grams 0; precision and recall are the same.
    assert chrf(["abcd"], ["abce"])[0] == pytest.approx(100 * (3 / 4 + 2 / 3 + 1 / 2 + 0) / 4, rel=1e-9)


def test_mistakes_are_named(monkeypatch):
    with pytest.raises(ValueError, match="hold no token"):
        token_accuracy(["a"], [[]])
    for name in ("sacrebleu", "sacrebleu.metrics"):
        monkeypatch.setitem(sys.modules, name, None)
    for metric in (bleu, chrf):
        with pytest.raises(ImportError, match=r"\[data\]"):
            metric(["a"], ["a"])
