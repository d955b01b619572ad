"""The metric of a model on sentences that it was not trained on."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from transformer.data.parallel_text import Pair, Pairs, first_of_each
from transformer.distributed import ALONE, Alone
from transformer.training.messages import shortened
from transformer.training.metrics import bleu, bleu_tokenizer, exact_match
from transformer.training.options import TrainingOptions
from transformer.translator import Translator


class Sample(NamedTuple):
    """A validation sentence and what the model makes of it."""

    source: str
    reference: str
    output: str

    def __str__(self) -> str:
        return "\n".join(f"    {name:10}{shortened(text, 160)}" for name, text in self._asdict().items())


def score(translator: Translator, pairs: Pairs, options: TrainingOptions, ranks: Alone = ALONE,
          beam: int = 1, alpha: float | None = None) -> tuple[float, list[Sample]]:
    """The metric that `Translator.evaluate` reports, on `valid_sentences` of the pairs, and the outputs behind it.

    Each source is translated once, and compared with the first of its targets. The `ranks` divide the work, and all
    have the result. Modes, random state and gradients stay as they are.
    """
    decoded: list[Pair] = spread(first_of_each(pairs), options.valid_sentences)
    batch_size = max(1, min(64, len(decoded)) // beam)  # a beam has the memory of greedy decoding
    found = translator.translate([source for source, _ in decoded], beam, 1, batch_size, alpha=alpha, ranks=ranks)
    samples = [Sample(source, translator.as_decoded(target), best.text)
               for (source, target), [best] in zip(decoded, found, strict=True)]
    _, references, outputs = zip(*samples, strict=True)
    if options.valid_metric == "exact_match":
        return exact_match(outputs, references), samples
    return bleu(outputs, references, bleu_tokenizer(translator.target_tokenizer.kind, references))[0], samples


def spread(items: Collection[Any] | Pairs, count: int) -> list[Any]:
    """At most `count` items at equal distances, so that text in order of length gives all lengths."""
    count = min(count, len(items))
    places = {(2 * i + 1) * len(items) // (2 * count) for i in range(count)}
    return [item for place, item in enumerate(items) if place in places]
