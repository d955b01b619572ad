"""Translation of lines of text: a model together with its tokenizers."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from minigrad import parallel

from transformer.data.batches import Batch, Example, batches_by_length, collate, encode_pairs
from transformer.data.tokenizer import Tokenizer, WordTokenizer
from transformer.data.vocabulary import EOS, UNK
from transformer.decode import beam_search
from transformer.decode.steps import decoding
from transformer.distributed import ALONE, Alone
from transformer.finite import overflow
from transformer.model import Transformer
from transformer.training.checkpoints import load_model
from transformer.training.metrics import bleu, exact_match, token_accuracy
from transformer.training.out_of_memory import BatchDoesNotFit, ModelDoesNotFit, memory_or
from transformer.training.packed import packed_loss
from transformer.training.threads import suitable_products

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Translation:
    """A translation of one line.

    Attributes:
        text: the translated line.
        score: its log-probability, normalised by the `length_penalty`; higher is better.
        ids: its target token ids, without begin- and end-of-sentence.
    """

    text: str
    score: float
    ids: list[int]


class TooLong(ValueError):
    """A sentence has more tokens than the model has positions.

    Attributes:
        index: the number of the sentence, counted from 0.
        side: 0 if the sentence is a source, 1 if it is a target.
        problem: its length and the remedy, in words.
    """

    def __init__(self, index: int, tokens: int, positions: int, name: str = "") -> None:
        self.index, self.side = index, int(name == "target")
        name = f"{name} " if name else ""
        self.problem = (f"{tokens:,} {name}tokens with end-of-sentence, more than the model's {positions:,} positions; "
                        "shorten it, or train with a larger --max-length")
        super().__init__(f"line {index + 1}: {self.problem}")


class Translator:
    """A model with its tokenizers.

    Args:
        model: a trained model in any mode, on any device.
        source_tokenizer, target_tokenizer: the tokenizers of its training.
    """

    def __init__(self, model: Transformer, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> None:
        self.model, self.source_tokenizer, self.target_tokenizer = model, source_tokenizer, target_tokenizer

    @classmethod
    def load(cls, folder: str | Path, device: str = "cpu", which: str = "best", ranks: Alone = ALONE) -> Self:
        """Load the "best" or "latest" model of a run, or that of a checkpoint by its name; rank 0 reads it for all.

        Raises `ModelDoesNotFit`, and what `load_model` raises.
        """
        with memory_or(ModelDoesNotFit()):
            model, run = load_model(folder, device, which, ranks)
        return cls(model, run.source_tokenizer, run.target_tokenizer)

    def translate(self, lines: Sequence[str], beam: int = 1, num_best: int = 1, batch_size: int = 64,
                  length_penalty: str = "gnmt", alpha: float = 0.6,
                  max_length: int | None = None, ranks: Alone = ALONE) -> list[list[Translation]]:
        """The best translations of each line, best first.

        Args:
            lines: source texts; the translation of a blank line is blank.
            beam: the beam size; 1 is greedy decoding.
            num_best: the number of translations to return for each line, at most `beam`.
            batch_size: the number of lines decoded together. Lines of like length share a batch, to limit padding.
            length_penalty, alpha: the normalisation of scores, see `beam_search`.
            max_length: the most tokens of a translation; by default twice the source's plus 10.
            ranks: the processes that divide the work; each calls with the same lines, and has all results.

        Returns:
            A list for each line, in the order of `lines`.

        Raises:
            TooLong: a line has more tokens than the model has positions; nothing was translated.
            ValueError: an argument out of range.
            NotFinite: the model gives no finite probabilities.
        """
        if batch_size < 1:
            raise ValueError(f"translate: batch_size must be at least 1, got {batch_size}")
        sources = [[*self.source_tokenizer.encode(line), EOS] for line in lines]
        for index, source in enumerate(sources):
            self._check_length(index, len(source))
        results = [[Translation("", 0.0, [])] for _ in lines]
        by_length = sorted((i for i, line in enumerate(lines) if line.strip()), key=lambda i: len(sources[i]))

        def translated(chosen: list[int]) -> list[list[tuple[float, list[int]]]]:
            batch = collate([(sources[i], []) for i in chosen], range(len(chosen)))
            with suitable_products(self.model.config):
                found = beam_search(self.model, batch.source, beam, num_best, max_length, length_penalty, alpha)
            return [[(hypothesis.score, hypothesis.ids) for hypothesis in hypotheses] for hypotheses in found]

        batches = [by_length[first:first + batch_size] for first in range(0, len(by_length), batch_size)]
        translations = ranks.merge([translated(chosen) for chosen in ranks.share(batches)])
        for chosen, found in zip(batches, translations, strict=True):
            for i, hypotheses in zip(chosen, found, strict=True):
                results[i] = [Translation(self.target_tokenizer.decode(ids), score, ids) for score, ids in hypotheses]
        return results

    def loss(self, pairs: Pairs, batch_tokens: int = 4096, ranks: Alone = ALONE) -> float:
        """The cross-entropy of the targets per token, end-of-sentence included, in nats, without dropout or smoothing.

        The `ranks` divide the batches, and all have the result.

        Raises:
            TooLong: a pair has more tokens than the model has positions.
            ValueError: there are no pairs.
            NotFinite: the loss is not finite.
            BatchDoesNotFit: there is too little memory for a batch.
        """
        examples = self._examples(pairs)
        batches = [collate(examples, indices) for indices in batches_by_length(examples, batch_tokens, seed=0, epoch=0)]

        def loss(batch: Batch) -> float:
            labels = batch.target[:, 1:]
            sentences, columns = batch.source.shape
            with memory_or(BatchDoesNotFit(sentences, columns, labels.shape[1], sentences)):
                return float(packed_loss(self.model, batch.source, labels, reduction="sum"))

        with decoding(self.model), suitable_products(self.model.config):
            total = sum(ranks.merge(parallel.run([partial(loss, batch) for batch in ranks.share(batches)])))
        if not math.isfinite(total):
            raise overflow(self.model, "loss")
        return total / sum(batch.num_target_tokens for batch in batches)

    def evaluate(self, pairs: Pairs, beam: int = 1, batch_size: int = 64, length_penalty: str = "gnmt",
                 alpha: float = 0.6, max_length: int | None = None, ranks: Alone = ALONE) -> dict[str, Any]:
        """Translate the sources of `pairs` and compare with their targets.

        Args:
            pairs: (source, target) texts, at least one.
            beam, batch_size, length_penalty, alpha, max_length: as for `translate`. A `batch_size` below 64 lowers the
                memory for the loss, too.
            ranks: as for `translate`.

        Returns:
            A dictionary of JSON values: ``exact_match`` and ``token_accuracy`` (fractions), ``loss`` (nats per token),
            ``bleu`` (0 to 100) and ``bleu_signature`` (both None if sacrebleu is not installed), ``sentences`` and
            ``seconds`` taken.

        Raises:
            TooLong, ValueError, NotFinite: as `translate` and `loss`.
        """
        start = time.perf_counter()
        loss = self.loss(pairs, min(4096, 64 * batch_size), ranks)
        found = self.translate([source for source, _ in pairs], beam, 1, batch_size, length_penalty, alpha, max_length,
                               ranks)
        hypotheses, references = [best[0].text for best in found], [self._as_decoded(target) for _, target in pairs]
        # A reference word outside the vocabulary becomes None, so that the token <unk> never counts as correct.
        right_ids = [[None if i == UNK else i for i in self.target_tokenizer.encode(text)] for text in references]
        scored: tuple[float, str] | tuple[None, None] = None, None
        with suppress(ImportError):  # sacrebleu is an extra
            scored = bleu(hypotheses, references, self.bleu_tokenize)
        return {
            "exact_match": exact_match(hypotheses, references),
            "token_accuracy": token_accuracy([best[0].ids for best in found], right_ids),
            "loss": loss,
            "bleu": scored[0],
            "bleu_signature": scored[1],
            "sentences": len(references),
            "seconds": time.perf_counter() - start,
        }

    @property
    def bleu_tokenize(self) -> str:
        """sacrebleu's tokenizer: "char" for a target of characters; otherwise "none", which splits at blanks."""
        return "char" if self.target_tokenizer.kind == "characters" else "none"

    def _check_length(self, index: int, tokens: int, side: str = "") -> None:
        positions = self.model.config.max_length
        if tokens > positions:
            raise TooLong(index, tokens, positions, side)

    def _examples(self, pairs: Pairs) -> list[Example]:
        if not pairs:
            raise ValueError("there are no sentence pairs to evaluate on")
        examples = encode_pairs(pairs, self.source_tokenizer, self.target_tokenizer)
        for index, (source, target) in enumerate(examples):
            self._check_length(index, len(source), "source")
            self._check_length(index, len(target) + 1, "target")
        return examples

    def _as_decoded(self, reference: str) -> str:
        """The reference as decoding would write it: a word tokenizer does not keep the original white space."""
        return " ".join(reference.split()) if isinstance(self.target_tokenizer, WordTokenizer) else reference
