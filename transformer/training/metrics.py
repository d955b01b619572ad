"""Metrics, which compare each hypothesis with one reference."""

from collections.abc import Sequence

from transformer.data.extras import require

BLEU_TOKENIZERS = ("none", "13a", "intl", "char", "zh")
"""The tokenizers that sacrebleu contains; its others need further packages or download a model."""


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The fraction of hypotheses that equal their reference, character for character.

    Raises:
        ValueError: the two differ in number, or there are none.
    """
    _check("exact_match", hypotheses, references)
    right = sum(hypothesis == reference for hypothesis, reference in zip(hypotheses, references, strict=True))
    return right / len(references)


def token_accuracy(
    hypotheses: Sequence[str | Sequence[object]], references: Sequence[str | Sequence[object]]
) -> float:
    """The fraction of all reference tokens that the hypothesis has at the same position.

    Tokens that a short hypothesis lacks count as wrong; those that a long one has beyond the reference do
    not count.

    Args:
        hypotheses, references: each a text, whose tokens are what white space separates, or a sequence of
            tokens.

    Raises:
        ValueError: the two differ in number, or the references hold no token.
    """
    _check("token_accuracy", hypotheses, references)
    right = total = 0
    for hypothesis, reference in zip(map(_tokens, hypotheses), map(_tokens, references), strict=True):
        right += sum(ours == theirs for ours, theirs in zip(hypothesis, reference, strict=False))
        total += len(reference)
    if not total:
        raise ValueError("token_accuracy: the references hold no token")
    return right / total


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "none") -> tuple[float, str]:
    """Corpus BLEU from 0 to 100, by sacrebleu, and the signature that says how it was computed.

    Papineni et al., "BLEU: a method for automatic evaluation of machine translation", 2002; Post, "A call
    for clarity in reporting BLEU scores", 2018.

    Args:
        tokenize: one of ``BLEU_TOKENIZERS``; ``"none"`` splits the texts at blanks.

    Raises:
        ValueError: the two differ in number, there are none, or the tokenizer is unknown.
        ImportError: sacrebleu is not installed.
    """
    _check("bleu", hypotheses, references)
    if tokenize not in BLEU_TOKENIZERS:
        raise ValueError(f"bleu: unknown tokenize={tokenize!r}; there are {', '.join(BLEU_TOKENIZERS)}")
    # force: no warning that the text looks tokenized, which "none" expects.
    metric = require("sacrebleu.metrics", "BLEU").BLEU(tokenize=tokenize, force=tokenize == "none")
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return float(score.score), str(metric.get_signature())


def _tokens(sentence: str | Sequence[object]) -> Sequence[object]:
    return sentence.split() if isinstance(sentence, str) else sentence


def _check(name: str, hypotheses: Sequence[object], references: Sequence[object]) -> None:
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{name}: {len(hypotheses)} hypotheses, {len(references)} references; there must be one for each"
        )
    if not references:
        raise ValueError(f"{name}: there are no sentences to score")
