"""For each task, the model and the training that reach its figure in the README; options can change every number."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from transformer.data.tasks import Task, get_task
from transformer.data.tokenizer import Tokenizer, build_tokenizers
from transformer.model import TransformerConfig
from transformer.training.options import TrainingOptions

Pairs = list[tuple[str, str]]
SIZES = ("d_model", "num_heads", "num_encoder_layers", "num_decoder_layers", "d_ff")  # what a preset chooses


@dataclass(frozen=True)
class Recipe:
    """How to train for a task.

    Attributes:
        preset: "tiny", "small" or "base": see `TransformerConfig`.
        model: changes to the preset.
        options: the training options.
        train_count, valid_count: how many generated pairs to train and to validate on.
    """

    preset: str
    options: TrainingOptions
    model: dict[str, Any] = field(default_factory=dict)
    train_count: int = 50_000
    valid_count: int = 1_000

    def config(self, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, **changes: Any) -> TransformerConfig:
        """The model's configuration for these vocabularies."""
        preset = getattr(TransformerConfig, self.preset)
        sizes = len(source_tokenizer.vocabulary), len(target_tokenizer.vocabulary)
        config: TransformerConfig = preset(*sizes, **(self.model | changes))
        return config

    def changed(self, given: dict[str, Any]) -> Recipe:
        """The recipe with the given options, by their names as attributes, and "layers", "preset" and the counts.

        A given preset replaces the recipe's sizes; the recipe's other changes to the model stay.
        """
        model = {name: value for name, value in self.model.items() if "preset" not in given or name not in SIZES}
        others = {name: given[name] for name in ("preset", "train_count", "valid_count") if name in given}
        options = changed_training(self.options, given)
        return replace(self, model=model | model_changes(given), options=options, **others)

    def data(self, task: str, seed: int) -> dict[str, Any]:
        """The entry of ``run.json`` on the source of the pairs of `task_pairs`, which a resumed run reads."""
        return {"task": task, "train_count": self.train_count, "valid_count": self.valid_count, "seed": seed}


def model_changes(given: dict[str, Any]) -> dict[str, Any]:
    """The attributes of `TransformerConfig` that the given options set."""
    both = dict.fromkeys(("num_encoder_layers", "num_decoder_layers"), given["layers"]) if "layers" in given else {}
    return both | _attributes(TransformerConfig, given)


def changed_training(options: TrainingOptions, given: dict[str, Any]) -> TrainingOptions:
    """The training options after the given changes; given steps replace earlier epochs, and the reverse."""
    changes = _attributes(TrainingOptions, given)
    if changes.keys() & {"steps", "epochs"}:
        changes = {"steps": None, "epochs": None} | changes
    if changes.get("clip_norm") == 0:
        changes["clip_norm"] = None
    return replace(options, **changes)


def _attributes(kind: Any, given: dict[str, Any]) -> dict[str, Any]:
    return {field.name: given[field.name] for field in fields(kind) if field.name in given}


# A generated example has one right answer, and a run sees it a few times only: no smoothing and no dropout are needed.
SYMBOLS = TrainingOptions(steps=1, batch_tokens=512, learning_rate=1.5e-3, warmup_steps=200, label_smoothing=0.0,
                          valid_every=500)
SMALL_VOCABULARY: dict[str, Any] = {"dropout": 0.0, "max_length": 64}

RECIPES: dict[str, Recipe] = {
    "copy": Recipe("tiny", replace(SYMBOLS, steps=1500), SMALL_VOCABULARY),
    "reverse": Recipe("tiny", replace(SYMBOLS, steps=3000), SMALL_VOCABULARY),
    "sort": Recipe("tiny", replace(SYMBOLS, steps=3000), SMALL_VOCABULARY),
    "addition": Recipe("tiny", replace(SYMBOLS, steps=4500, batch_tokens=1024, warmup_steps=400, valid_every=900),
                       SMALL_VOCABULARY | {"d_model": 128, "d_ff": 512}, train_count=200_000),
    "dates": Recipe("tiny", replace(SYMBOLS, steps=2400, batch_tokens=1024, learning_rate=2e-3, valid_every=400,
                                     keep=6),
                    SMALL_VOCABULARY | {"max_length": 128}, train_count=60_000),
    # What a plan for the text leaves as it is, see `transformer.training.plan`.
    "text": Recipe("small", TrainingOptions(steps=1, schedule="wsd", valid_metric="bleu"),
                   {"tie_output": True, "num_heads": 1}),
}


def task_tokenizers(task: Task, pairs: Pairs) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of a generated task, from its training pairs."""
    sources, targets = zip(*pairs, strict=True)
    return build_tokenizers(task.tokenizer_kind, sources, targets, shared=False)


def task_pairs(name: str, recipe: Recipe, seed: int) -> tuple[Pairs, Pairs]:
    """The training and validation pairs of a generated task."""
    task = get_task(name)
    return task.pairs("train", recipe.train_count, seed), task.pairs("valid", recipe.valid_count, seed)
