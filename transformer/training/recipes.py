"""For each task, the model and the training that reach its figure in the README; options can change every number."""

from dataclasses import fields
from typing import Any

from transformer.data.tokenizer import Tokenizer
from transformer.model import TransformerConfig
from transformer.training.options import TrainingOptions

# By their names in TransformerConfig and TrainingOptions; "preset" ("tiny", "small" or "base": see TransformerConfig),
# "layers" for both sides; and "train_count" and "valid_count", of generated pairs.
Options = dict[str, Any]

# A generated example has one right answer, and a run sees it a few times only: no smoothing and no dropout are needed.
SYMBOLS: Options = {
    "preset": "tiny", "dropout": 0.0, "max_length": 64, "batch_tokens": 512, "learning_rate": 1.5e-3,
    "warmup_steps": 200, "label_smoothing": 0.0, "valid_every": 500, "train_count": 50_000, "valid_count": 1_000,
}
RECIPES: dict[str, Options] = {
    "copy": SYMBOLS | {"steps": 1500},
    "reverse": SYMBOLS | {"steps": 3000},
    "sort": SYMBOLS | {"steps": 3000},
    "addition": SYMBOLS | {"d_model": 128, "d_ff": 512, "steps": 4500, "batch_tokens": 1024, "warmup_steps": 400,
                           "valid_every": 900, "train_count": 200_000},
    "dates": SYMBOLS | {"max_length": 128, "steps": 2400, "batch_tokens": 1024, "learning_rate": 2e-3,
                        "valid_every": 400, "keep": 6, "train_count": 60_000},
    # What a plan for the text leaves as it is, see `transformer.training.plan`.
    "text": {"preset": "small", "tie_output": True, "num_heads": 1, "schedule": "wsd", "valid_metric": "bleu"},
}


def changed(options: Options, given: Options) -> Options:
    """The options with the given ones in their place.

    A given preset replaces all sizes; steps that are given replace epochs, and the reverse.
    """
    layers = ("num_encoder_layers", "num_decoder_layers")
    replaced = ("d_model", "num_heads", "d_ff", *layers) * ("preset" in given)
    replaced += ("steps", "epochs") * bool(given.keys() & {"steps", "epochs"})
    both = dict.fromkeys(layers, given["layers"]) if "layers" in given else {}
    return {name: value for name, value in options.items() if name not in replaced} | both | given


def options_of(kind: type, options: Options) -> Options:
    """The options that are attributes of `kind`, TransformerConfig or TrainingOptions."""
    return {field.name: options[field.name] for field in fields(kind) if field.name in options}


def model_config(options: Options, source: Tokenizer, target: Tokenizer) -> TransformerConfig:
    """The configuration of a model for these vocabularies: one embedding for both sides, if they are the same."""
    config: TransformerConfig = getattr(TransformerConfig, options["preset"])(
        len(source.vocabulary), len(target.vocabulary), **options_of(TransformerConfig, options) | {
            "share_embeddings": source is target})
    return config


def training_options(options: Options) -> TrainingOptions:
    """The options of a training run."""
    return TrainingOptions(**options_of(TrainingOptions, options))
