"""Metrics against values worked out by hand."""

import math
import sys

import pytest

from transformer.training.metrics import bleu, exact_match, token_accuracy


def test_exact_match():
    assert exact_match(["a b", "c", "d "], ["a b", "C", "d"]) == 1 / 3
    assert exact_match(["a"], ["a"]) == 1.0


def test_token_accuracy_by_position():
    # 2 of 3, then 0 of 1: the tokens count, not the sentences.
    assert token_accuracy(["a x c", "y"], ["a b c", "b"]) == 2 / 4
    assert token_accuracy(["a b c"], ["a b c"]) == 1.0


def test_token_accuracy_of_short_and_long_hypotheses():
    assert token_accuracy(["a b"], ["a b c d"]) == 2 / 4
    assert token_accuracy(["a b c d"], ["a b"]) == 1.0
    assert token_accuracy(["", "a"], ["a b", "a"]) == 1 / 3
    assert token_accuracy(["b c a"], ["a b c"]) == 0.0  # shifted by one: nothing is in its place


def test_token_accuracy_of_token_sequences():
    assert token_accuracy([list("2021-03-04")], [list("2021-03-03")]) == 9 / 10
    assert token_accuracy([[4, 5, 6]], [(4, 5, 7)]) == 2 / 3


def test_bleu_by_hand():
    pytest.importorskip("sacrebleu", reason="BLEU needs the data extra")
    # Precisions 4/5, 3/4, 2/3, 1/2; five words against six: brevity penalty exp(1 - 6/5).
    score, signature = bleu(["the cat sat on a"], ["the cat sat on the mat"])
    precision = (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    assert score == pytest.approx(100 * math.exp(1 - 6 / 5) * precision, rel=1e-9)
    for part in ("nrefs:1", "case:mixed", "tok:none", "smooth:exp", "version:"):
        assert part in signature


def test_bleu_is_a_score_of_the_corpus():
    pytest.importorskip("sacrebleu", reason="BLEU needs the data extra")
    references = ["a b c d e", "f g h i j"]
    # Counts are added up over the sentences: 5/10, 4/8, 3/6, 2/4.
    assert bleu(["a b c d e", "v w x y z"], references)[0] == pytest.approx(50.0, rel=1e-9)
    assert bleu(references, references)[0] == pytest.approx(100.0, rel=1e-9)


def test_bleu_tokenizers():
    pytest.importorskip("sacrebleu", reason="BLEU needs the data extra")
    hypotheses, references = ["It is a cat, yes."], ["It is a cat , yes ."]
    assert bleu(hypotheses, references, tokenize="13a")[0] == pytest.approx(100.0, rel=1e-9)
    assert bleu(hypotheses, references)[0] < 100
    assert "tok:13a" in bleu(hypotheses, references, tokenize="13a")[1]
    with pytest.raises(ValueError, match="unknown tokenize='klingon'; there are none, 13a"):
        bleu(hypotheses, references, tokenize="klingon")


def test_tokenized_text_gives_no_warning(caplog):
    pytest.importorskip("sacrebleu", reason="BLEU needs the data extra")
    bleu(["a b c ."] * 150, ["a b c ."] * 150)
    assert not caplog.records


@pytest.mark.parametrize("metric", [exact_match, token_accuracy, bleu])
def test_mistakes_are_named(metric):
    with pytest.raises(ValueError, match="2 hypotheses, 1 references"):
        metric(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="no sentences"):
        metric([], [])


def test_references_without_a_token():
    with pytest.raises(ValueError, match="hold no token"):
        token_accuracy(["a"], [" "])


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    with pytest.raises(ImportError, match=r"the package 'sacrebleu': .* pip install -e '\.\[data\]'"):
        bleu(["a"], ["a"])
