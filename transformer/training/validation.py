"""Validation: the loss and the metric of a model on pairs that it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from transformer.distributed import ALONE, Alone
from transformer.training.options import TrainingOptions
from transformer.training.out_of_memory import BatchDoesNotFit, DecodingDoesNotFit, LossDoesNotFit, memory_or
from transformer.translator import Translator

METRIC_NAMES = {"exact_match": "exact match", "bleu": "BLEU"}


@dataclass(frozen=True)
class Validation:
    """The loss per target token, without smoothing, and the metric: exact match (a fraction) or BLEU (0 to 100)."""

    loss: float
    metric: float

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """From two numbers by name; KeyError, TypeError or ValueError for malformed values."""
        return cls(float(values["loss"]), float(values["metric"]))

    def better_than(self, other: Validation) -> bool:
        """Whether the metric is higher, or the same with a lower loss."""
        return (self.metric, -self.loss) > (other.metric, -other.loss)

    def describe(self, metric: str) -> str:
        """The loss and the metric, in one line of text."""
        value = f"{100 * self.metric:.2f} %" if metric == "exact_match" else f"{self.metric:.2f}"
        return f"validation loss {self.loss:.4f}, {METRIC_NAMES[metric]} {value}"


def validate(translator: Translator, pairs: Sequence[tuple[str, str]], options: TrainingOptions,
             ranks: Alone = ALONE) -> Validation:
    """The loss on all `pairs`, and the metric of greedy decoding on the first `options.valid_sentences` of them.

    The metric is the one that `Translator.evaluate` reports. The `ranks` divide the work, and all have the result.
    Modes, random state and gradients stay as they are.

    Raises:
        LossDoesNotFit, DecodingDoesNotFit: there is too little memory for one of the two.
    """
    try:
        loss = translator.loss(pairs, max(1, options.batch_tokens // options.micro_batches), ranks)
    except BatchDoesNotFit as error:
        raise LossDoesNotFit(error) from error
    decoded = pairs[: options.valid_sentences]
    batch_size = min(64, len(decoded))
    with memory_or(DecodingDoesNotFit(batch_size)):
        return Validation(loss, translator.evaluate(decoded, batch_size=batch_size, ranks=ranks)[options.valid_metric])
