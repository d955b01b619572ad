"""Validation: the loss and the metric of a model on pairs that it was not trained on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from transformer.data.parallel_text import Pair, Pairs, first_of_each
from transformer.distributed import ALONE, Alone
from transformer.training.messages import shortened
from transformer.training.metrics import bleu, bleu_tokenizer, exact_match
from transformer.training.options import TrainingOptions
from transformer.translator import Translator

METRIC_NAMES = {"exact_match": "exact match", "bleu": "BLEU"}
NOISE = {"exact_match": 0.0, "bleu": 5.0}  # of so little BLEU, a few chance words decide


class Sample(NamedTuple):
    """A validation sentence and what the model makes of it."""

    source: str
    reference: str
    output: str

    def __str__(self) -> str:
        return "\n".join(f"    {name:10}{shortened(text, 160)}" for name, text in self._asdict().items())


@dataclass(frozen=True)
class Validation:
    """The loss per target token, without smoothing, and the metric: exact match (a fraction) or BLEU (0 to 100).

    Attributes:
        samples: three of the sentences behind the metric, the same ones at every validation.
    """

    loss: float
    metric: float
    samples: tuple[Sample, ...] = field(default=(), compare=False)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """From two numbers by name; KeyError, TypeError or ValueError for malformed values."""
        return cls(float(values["loss"]), float(values["metric"]))

    def to_json(self) -> dict[str, float]:
        """The two numbers by name."""
        return {"loss": self.loss, "metric": self.metric}

    def better_than(self, other: Validation, metric: str = "exact_match") -> bool:
        """Whether the metric is higher, or the same with a lower loss; below `NOISE` all metrics are the same."""
        least = NOISE[metric]
        return (max(self.metric, least), -self.loss) > (max(other.metric, least), -other.loss)

    def describe(self, metric: str) -> str:
        """The loss and the metric, in one line of text."""
        value = f"{100 * self.metric:.2f} %" if metric == "exact_match" else f"{self.metric:.2f}"
        return f"validation loss {self.loss:.4f}, {METRIC_NAMES[metric]} {value}"


def validate(translator: Translator, pairs: Sequence[Pair], options: TrainingOptions, ranks: Alone = ALONE
             ) -> Validation:
    """The loss on all `pairs`, and the metric of greedy decoding on `decoded` of them.

    The metric is the one that `Translator.evaluate` reports. The `ranks` divide the work, and all have the result.
    Modes, random state and gradients stay as they are.
    """
    loss = translator.loss(pairs, options.batch_tokens, ranks)
    metric, samples = score(translator, decoded(pairs, options), options, ranks)
    return Validation(loss, metric, tuple(spread(samples, 3)))


def score(translator: Translator, pairs: Sequence[Pair], options: TrainingOptions, ranks: Alone = ALONE,
          beam: int = 1, alpha: float | None = None) -> tuple[float, list[Sample]]:
    """The metric of the options for the outputs of `pairs`, and these outputs."""
    batch_size = max(1, min(64, len(pairs)) // beam)  # a beam has the memory of greedy decoding
    found = translator.translate([source for source, _ in pairs], beam, 1, batch_size, alpha=alpha, ranks=ranks)
    samples = [Sample(source, translator.as_decoded(target), best.text)
               for (source, target), [best] in zip(pairs, found, strict=True)]
    _, references, outputs = map(list, zip(*samples, strict=True))
    if options.valid_metric == "exact_match":
        return exact_match(outputs, references), samples
    return bleu(outputs, references, bleu_tokenizer(translator.target_tokenizer.kind, references))[0], samples


def decoded(pairs: Pairs, options: TrainingOptions) -> list[Pair]:
    """The pairs behind the metric: `options.valid_sentences`, each source with the first of its targets."""
    return spread(first_of_each(pairs), options.valid_sentences)


def spread(items: Collection[Any] | Pairs, count: int) -> list[Any]:
    """At most `count` items at equal distances, so that text in order of length gives all lengths."""
    count = min(count, len(items))
    places = {(2 * i + 1) * len(items) // (2 * count) for i in range(count)}
    return [item for place, item in enumerate(items) if place in places]
