"""Metrics, which compare each hypothesis with one reference; `Translator.evaluate` checks what they are given."""

import operator
import re
from collections.abc import Sequence
from typing import Any

from transformer.data.extras import require

BLEU_TOKENIZERS = ("none", "13a", "intl", "char", "zh")
"""The tokenizers that sacrebleu contains; its others need further packages or download a model."""
# Thai, Lao, Tibetan, Burmese, Khmer, kana, and the Chinese characters with their extensions.
_UNSPACED = ("[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f"
             "\U00020000-\U0003ffff]")


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The fraction of hypotheses that equal their reference, character for character."""
    return sum(map(operator.eq, hypotheses, references)) / len(references)


def token_accuracy(hypotheses: Sequence[Sequence[object]], references: Sequence[Sequence[object]]) -> float:
    """The fraction of all reference tokens that the hypothesis has at the same position.

    Tokens that a short hypothesis lacks count as wrong; those that a long one has beyond the reference do
    not count.

    Args:
        hypotheses, references: sequences of tokens.

    Raises:
        ValueError: the references hold no token.
    """
    total = sum(map(len, references))
    if not total:
        raise ValueError("token_accuracy: the references hold no token")
    return sum(sum(map(operator.eq, *pair)) for pair in zip(hypotheses, references, strict=True)) / total


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "none") -> tuple[float, str]:
    """Corpus BLEU from 0 to 100, by sacrebleu, and the signature that says how it was computed.

    Papineni et al., "BLEU: a method for automatic evaluation of machine translation", 2002; Post, "A call
    for clarity in reporting BLEU scores", 2018.

    Args:
        tokenize: one of ``BLEU_TOKENIZERS``; ``"none"`` splits the texts at blanks.

    Raises:
        KeyError: the tokenizer is unknown.
        ImportError: sacrebleu is not installed.
    """
    # force: no warning that the text looks tokenized, as the text that one trains on may be.
    return _corpus_score("BLEU", hypotheses, references, tokenize=tokenize, force=True)


def bleu_tokenizer(kind: str, references: Sequence[str]) -> str:
    """The tokenizer with which BLEU should split texts that a tokenizer of this `kind` decoded.

    Words are split already: "none". Characters are the tokens of a model of characters: "char". Byte pairs decode to
    ordinary text, for which "13a" is the standard. It splits at blanks and punctuation, and would take a sentence in a
    script without blanks, such as Japanese, for one word: "char" for those. Text in such a script that has been divided
    into words, with a blank at least every eight characters, has "13a".
    """
    if kind in ("words", "characters"):
        return "none" if kind == "words" else "char"
    text = "\n".join(references)
    unspaced, letters, blanks = (len(re.findall(pattern, text)) for pattern in (
        _UNSPACED, r"[^\W\d_]", f"{_UNSPACED} (?={_UNSPACED})"))
    return "char" if unspaced > max(letters / 2, 8 * blanks) else "13a"


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """Corpus chrF2 from 0 to 100, by sacrebleu, and the signature that says how it was computed.

    Popović, "chrF: character n-gram F-score for automatic MT evaluation", 2015.

    Raises:
        ImportError: sacrebleu is not installed.
    """
    return _corpus_score("chrF", hypotheses, references)


def _corpus_score(metric: str, hypotheses: Sequence[str], references: Sequence[str], **options: Any
                  ) -> tuple[float, str]:
    scorer = getattr(require("sacrebleu.metrics", metric), metric.upper())(**options)
    return float(scorer.corpus_score(list(hypotheses), [list(references)]).score), str(scorer.get_signature())
