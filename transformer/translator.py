"""Translation of lines of text: a model together with its tokenizers."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Self

from minigrad import parallel

from transformer.data.batches import batches_by_length, collate, padded
from transformer.data.parallel_text import Pairs
from transformer.data.tokenizer import Tokenizer, WordTokenizer
from transformer.data.vocabulary import EOS, UNK
from transformer.decode import beam_search
from transformer.decode.controls import refuse_unknown
from transformer.decode.search import MAX_ALPHA, decoding
from transformer.distributed import ALONE, Alone
from transformer.finite import overflow
from transformer.model import Transformer
from transformer.training.checkpoints import load_model
from transformer.training.messages import note
from transformer.training.metrics import bleu, bleu_tokenizer, chrf, exact_match, token_accuracy
from transformer.training.run_folder import read_file, replace_file
from transformer.training.threads import suitable_products

ALPHA = 0.6  # of the length normalisation, where the training chose none
DECODING = "decoding.json"  # in the folder of a run: {"alpha": 1.2}, which its training chose


@dataclass(frozen=True)
class Translation:
    """A translation of one line.

    Attributes:
        text: the translated line.
        score: its log-probability, normalised for length; higher is better.
        ids: its target token ids, without begin- and end-of-sentence.
        truncated: whether the line has more tokens than the model has positions, and was cut.
    """

    text: str
    score: float
    ids: list[int]
    truncated: bool = False


@dataclass(eq=False, repr=False)
class Translator:
    """A model with its tokenizers.

    Args:
        model: a trained model in any mode, on any device.
        source_tokenizer, target_tokenizer: the tokenizers of its training.
        alpha: the default `alpha` of its methods.
        data: what it was trained on, as its run describes it.
    """

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    alpha: float = ALPHA
    data: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: str | Path, device: str = "cpu", which: str = "best", ranks: Alone = ALONE) -> Self:
        """Load the "best" or "latest" model of a run, or that of a checkpoint by its name; rank 0 reads it for all.

        Its `alpha` is `chosen_alpha` of the run. Raises what `load_model` raises.
        """
        model, run = load_model(folder, device, which, ranks)
        return cls(model, *run.tokenizers, chosen_alpha(folder, ranks), run.data)

    def translate(self, lines: Iterable[str], beam: int = 1, num_best: int = 1, batch_size: int = 64,
                  alpha: float | None = None, max_length: int | None = None, ranks: Alone = ALONE,
                  prefix: str | Sequence[str] = "", **controls: Any) -> list[list[Translation]]:
        """The best translations of each line, best first.

        Args:
            lines: source texts, such as a list or an open file; a line ending at their end is dropped. The translation
                of a blank line is blank. A line with more tokens than the model has positions is cut.
            beam: the beam size; 1 is greedy decoding.
            num_best: the number of translations to return for each line, at most `beam`.
            batch_size: the number of lines decoded together. Lines of like length share a batch, to limit padding.
            alpha: of the normalisation of scores, see `beam_search`; None: the translator's `alpha`.
            max_length: the most tokens of a translation; by default twice the source's plus 10.
            ranks: the processes that divide the work; each calls with the same lines, and has all results.
            prefix: what every translation begins with, in whole tokens; or a list with a text for each line.
            controls: the options of `transformer.decode.Controls` by name: min_length, repetition_penalty,
                no_repeat_ngram_size.

        Returns:
            A list for each line, in the order of `lines`.

        Raises:
            TypeError: `lines` is a single text, or one of them no str; an option that there is not.
            ValueError: an argument out of range; a prefix with tokens that the target's vocabulary lacks, another
                number of them.
            NotFinite: the model gives no finite probabilities.
        """
        refuse_unknown(self.translate, controls)
        if batch_size < 1:
            raise ValueError(f"translate: batch_size must be at least 1, got {batch_size}")
        lines = _texts(lines, "translate")
        prefixes = self._prefixes(prefix, len(lines))
        alpha = self.alpha if alpha is None else alpha
        encoded = [self.source_tokenizer.encode(line) for line in lines]
        sources = [[*ids[:self._room], EOS] for ids in encoded]
        results = [[Translation("", 0.0, [])] for _ in lines]
        by_length = sorted((i for i, line in enumerate(lines) if line.strip()), key=lambda i: len(sources[i]))
        batches = [by_length[first:first + batch_size] for first in range(0, len(by_length), batch_size)]
        found = []
        with suitable_products(self.model.config):
            for chosen in ranks.share(batches):
                best = beam_search(self.model, padded([sources[i] for i in chosen]), beam, num_best, max_length, alpha,
                                   [prefixes[i] for i in chosen], **controls)
                found.append([[(hypothesis.score, hypothesis.ids) for hypothesis in sentence] for sentence in best])
        merged = ranks.merge(found)
        for i, sentence in zip(by_length, chain.from_iterable(merged), strict=True):
            results[i] = [Translation(self.target_tokenizer.decode(ids), score, ids, len(encoded[i]) > self._room)
                          for score, ids in sentence]
        return results

    def loss(self, pairs: Pairs, batch_tokens: int = 4096, ranks: Alone = ALONE) -> float:
        """The cross-entropy of the targets per token, end-of-sentence included, in nats, without dropout or smoothing.

        A text with more tokens than the model has positions is cut. The `ranks` divide the batches, and all have the
        result.

        Raises:
            ValueError: there are no pairs.
            NotFinite: the loss is not finite.
        """
        if not pairs:
            raise ValueError("there are no sentence pairs to evaluate on")
        examples = [([*self.source_tokenizer.encode(source)[:self._room], EOS],
                     self.target_tokenizer.encode(target)[:self._room]) for source, target in pairs]
        batches = [collate(examples, indices) for indices in batches_by_length(examples, batch_tokens, seed=0, epoch=0)]
        with decoding(self.model), suitable_products(self.model.config):
            losses = [partial(self.model.loss, batch.source, batch.target[:, 1:], reduction="sum")
                      for batch in ranks.share(batches)]
            total = sum(ranks.merge([float(loss) for loss in parallel.run(losses)]))
        if not math.isfinite(total):
            raise overflow(self.model, "loss")
        return total / sum(batch.num_target_tokens for batch in batches)

    def evaluate(self, sources: Iterable[str], references: Iterable[str], beam: int = 1, batch_size: int = 64,
                 alpha: float | None = None, max_length: int | None = None, ranks: Alone = ALONE,
                 bleu_tokenize: str | None = None, **controls: Any) -> dict[str, Any]:
        """Translate the `sources` and compare with the `references`.

        Args:
            sources, references: texts, one reference for each source and at least one.
            beam, batch_size, alpha, max_length, ranks: as for `translate`. A `batch_size` below 64 lowers the memory
                for the loss, too.
            bleu_tokenize: one of `metrics.BLEU_TOKENIZERS`; None: the choice of `metrics.bleu_tokenizer`.
            controls: as for `translate`.

        Returns:
            A dictionary of JSON values: ``bleu`` and ``chrf`` (0 to 100), ``bleu_signature`` and ``chrf_signature``
            (all None if sacrebleu is not installed), ``exact_match`` and ``token_accuracy`` (fractions), ``loss`` (nats
            per token), the numbers of ``sentences`` and of ``truncated`` sources, ``seconds`` taken, and ``outputs``,
            the list of translations.

        Raises:
            TypeError, ValueError, NotFinite: as `translate` and `loss`; ValueError, too, unless there is one reference
                for each source.
        """
        refuse_unknown(self.evaluate, controls)
        start = time.perf_counter()
        sources, references = _texts(sources, "evaluate"), _texts(references, "evaluate")
        if len(sources) != len(references):
            raise ValueError(f"evaluate: {len(sources)} sources, {len(references)} references; there must be one "
                             "for each")
        loss = self.loss([*zip(sources, references, strict=True)], min(4096, 64 * batch_size), ranks)
        found = [best for [best] in self.translate(sources, beam, 1, batch_size, alpha, max_length, ranks, **controls)]
        outputs, references = [best.text for best in found], [self.as_decoded(text) for text in references]
        # A reference word outside the vocabulary becomes None, so that the token <unk> never counts as correct.
        right_ids = [[None if i == UNK else i for i in self.target_tokenizer.encode(text)] for text in references]
        scored: dict[str, Any] = dict.fromkeys(("bleu", "bleu_signature", "chrf", "chrf_signature"))
        with suppress(ImportError):  # sacrebleu is an extra
            scored["bleu"], scored["bleu_signature"] = bleu(
                outputs, references, bleu_tokenize or bleu_tokenizer(self.target_tokenizer.kind, references))
            scored["chrf"], scored["chrf_signature"] = chrf(outputs, references)
        return {
            **scored,
            "exact_match": exact_match(outputs, references),
            "token_accuracy": token_accuracy([best.ids for best in found], right_ids),
            "loss": loss,
            "sentences": len(references),
            "truncated": sum(best.truncated for best in found),
            "seconds": time.perf_counter() - start,
            "outputs": outputs,
        }

    def _prefixes(self, prefix: str | Sequence[str], count: int) -> list[list[int]]:
        """The tokens of the prefix of each of `count` lines."""
        texts = [prefix] * count if isinstance(prefix, str) else _texts(prefix, "translate: prefix")
        if len(texts) != count:
            raise ValueError(f"translate: {count} lines, {len(texts)} prefixes; there must be one for each")
        for text in {*texts}:
            if unknown := self.target_tokenizer.unknown(text):
                raise ValueError(f"translate: the target's vocabulary lacks {unknown[0]!r} of the prefix {text!r}")
        return [self.target_tokenizer.encode(text) for text in texts]

    @property
    def _room(self) -> int:
        """The most tokens of a text that the model has positions for, beside end-of-sentence."""
        return self.model.config.max_length - 1

    def as_decoded(self, reference: str) -> str:
        """The reference as decoding would write it: a word tokenizer does not keep the original white space."""
        return " ".join(reference.split()) if isinstance(self.target_tokenizer, WordTokenizer) else reference


def choose_alpha(folder: Path, alpha: float) -> None:
    """Make `alpha` the default of the run in `folder`."""
    replace_file(folder / DECODING, json.dumps({"alpha": alpha}).encode())


def chosen_alpha(folder: str | Path, ranks: Alone = ALONE) -> float:
    """The default alpha of a run, or 0.6; a note tells of a damaged file. Rank 0 reads it for all."""
    path = Path(folder) / DECODING

    def read() -> float:
        with suppress(OSError, ValueError):
            match json.loads(read_file(path)):
                case {"alpha": int() | float() as alpha} if 0 <= alpha <= MAX_ALPHA:
                    return alpha
        if path.exists():
            note(f"{path}: damaged; alpha is {ALPHA}")
        return ALPHA

    return ranks.first(read)


def _texts(lines: Iterable[str], caller: str) -> list[str]:
    """The lines without their endings; TypeError if they are a single text, or one of them is no str."""
    if isinstance(lines, str | bytes):
        raise TypeError(f"{caller}: a list of texts is needed, not a single text; give [text]")
    lines = list(lines)
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, str):
            raise TypeError(f"{caller}: line {number} is of type {type(line).__name__}, not str")
    return [line.removesuffix("\n").removesuffix("\r") for line in lines]
