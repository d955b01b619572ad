"""The options of ``train``, and their effect on the model's configuration and the training options.

An option that is not given is None: its value comes from the task's recipe or, in a resumed run, from that run.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import click

from transformer.cli.command import COUNT, SEED, F, FiniteRange, option
from transformer.data.tasks import TASKS
from transformer.data.vocabulary import SPECIALS
from transformer.model import TransformerConfig
from transformer.training.options import MOST, TrainingOptions
from transformer.training.recipes import RECIPES, Recipe

POSITIVE, NOT_NEGATIVE = FiniteRange(0, min_open=True), FiniteRange(0)
PROBABILITY = FiniteRange(0, 1, max_open=True)
WARM_UP = click.IntRange(0, MOST)
VOCABULARY = click.IntRange(len(SPECIALS) + 1, MOST)  # room for a token of the text
SIZES = ("d_model", "num_heads", "num_encoder_layers", "num_decoder_layers", "d_ff")  # what --config chooses
FILES = {"nargs": 2, "metavar": "SRC TGT", "type": click.Path()}


def _choice(*values: str) -> dict[str, Any]:
    return {"type": click.Choice(values)}


# An option has a second name where the attribute that it sets, of TransformerConfig or TrainingOptions, has another.
_SECTIONS: dict[str, list[tuple[tuple[str, ...], dict[str, Any], str]]] = {
    "Data (one of --task and --train)": [
        (("--task",), {**_choice(*TASKS), "metavar": "NAME"}, f"A generated task: {', '.join(TASKS)}."),
        (("--train",), FILES, "Parallel text to train on: two UTF-8 files, one sentence a line."),
        (("--valid",), FILES, "Parallel text to validate on."),
        (("--tokens",), _choice("words", "characters", "bpe"), "How text is cut into tokens."),
        (("--vocab-size",), {"type": VOCABULARY, "metavar": "N"}, "The most tokens of a vocabulary."),
        (("--shared-vocab/--separate-vocab",), {}, "One vocabulary and embedding for both sides, or two."),
        (("--train-count",), {"type": COUNT, "metavar": "N"}, "Generated pairs to train on."),
        (("--valid-count",), {"type": COUNT, "metavar": "N"}, "Generated pairs to validate on."),
    ],
    "Model": [
        (("--config", "preset"), _choice("tiny", "small", "base"),
         "A preset of sizes: tiny (2+2 layers, d_model 64), small (3+3, 256), base (6+6, 512: the paper's)."),
        (("--d-model",), {"type": COUNT, "metavar": "N"}, "Features of a token between the layers."),
        (("--heads", "num_heads"), {"type": COUNT, "metavar": "N"}, "Attention heads; they divide d_model."),
        (("--layers",), {"type": COUNT, "metavar": "N"}, "Layers of the encoder and of the decoder, each."),
        (("--encoder-layers", "num_encoder_layers"), {"type": COUNT, "metavar": "N"}, "Layers of the encoder."),
        (("--decoder-layers", "num_decoder_layers"), {"type": COUNT, "metavar": "N"}, "Layers of the decoder."),
        (("--d-ff",), {"type": COUNT, "metavar": "N"}, "Inner features of the feed-forward layers."),
        (("--dropout",), {"type": PROBABILITY, "metavar": "P"}, "Probability of dropping a feature or a weight."),
        (("--norm",), _choice("pre", "post"), "Normalise before each sublayer, or after it, as the paper does."),
        (("--activation",), _choice("relu", "gelu", "gelu_tanh", "silu"), "Activation of the feed-forward layers."),
        (("--positions",), _choice("sinusoidal", "learned"), "How positions are encoded."),
        (("--max-length",), {"type": COUNT, "metavar": "N"}, "The longest sentence, in tokens with end-of-sentence."),
        (("--tie/--no-tie", "tie_output"), {}, "Use the target embedding as the output projection."),
    ],
    "Training": [
        (("--steps",), {"type": COUNT, "metavar": "N"}, "Updates to make."),
        (("--epochs",), {"type": COUNT, "metavar": "N"}, "Passes over the data to make."),
        (("--minutes",), {"type": POSITIVE, "metavar": "X"}, "End after this much training time."),
        (("--batch-tokens",), {"type": COUNT, "metavar": "N"}, "Size of a batch: sentences × the longest, in tokens."),
        (("--accumulate",), {"type": COUNT, "metavar": "N"}, "Gradient accumulation: batches for one update."),
        (("--micro-batches",), {"type": COUNT, "metavar": "N"},
         "Compute each batch in N parts, one after the other: the same updates in less memory."),
        (("--learning-rate",), {"type": POSITIVE, "metavar": "X"}, "The highest learning rate."),
        (("--warmup", "warmup_steps"), {"type": WARM_UP, "metavar": "N"}, "Updates until the highest rate."),
        (("--schedule",), _choice("inverse_sqrt", "cosine", "linear", "constant"), "How the rate falls after warm-up."),
        (("--label-smoothing",), {"type": PROBABILITY, "metavar": "P"}, "Probability spread over all tokens."),
        (("--clip", "clip_norm"), {"type": NOT_NEGATIVE, "metavar": "X"}, "Largest gradient norm; 0 does not clip."),
        (("--weight-decay",), {"type": NOT_NEGATIVE, "metavar": "X"}, "Decoupled weight decay, as in AdamW."),
        (("--adam-beta2",), {"type": PROBABILITY, "metavar": "X"}, "Decay of Adam's second moment."),
        (("--seed",), {"type": SEED, "metavar": "N"}, "Seed of data, parameters, dropout."),
    ],
    "Validation and checkpoints": [
        (("--valid-every",), {"type": COUNT, "metavar": "N"}, "Updates between validations; each saves a checkpoint."),
        (("--valid-sentences",), {"type": COUNT, "metavar": "N"}, "Sentences to translate in each validation."),
        (("--metric", "valid_metric"), _choice("exact_match", "bleu"), "The metric that chooses the best model."),
        (("--patience",), {"type": COUNT, "metavar": "N"}, "End after N validations without a better one."),
        (("--keep",), {"type": COUNT, "metavar": "N"}, "Checkpoints to keep, beside the best."),
        (("--average",), {"type": COUNT, "metavar": "N"}, "At the end, average the last N checkpoints."),
    ],
}


def training_options(command: F) -> F:
    """Give a command all of the options above."""
    decorators = [
        option(*names, default=None, section=section, help=text, **attributes)
        for section, rows in _SECTIONS.items() for names, attributes, text in rows
    ]
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def model_changes(given: dict[str, Any]) -> dict[str, Any]:
    """The attributes of `TransformerConfig` that the given options set."""
    changes: dict[str, Any] = {}
    if "layers" in given:
        changes |= {"num_encoder_layers": given["layers"], "num_decoder_layers": given["layers"]}
    names = {field.name for field in fields(TransformerConfig)}
    return changes | {name: value for name, value in given.items() if name in names}


def changed_training(options: TrainingOptions, given: dict[str, Any]) -> TrainingOptions:
    """The training options after the given changes; given steps replace earlier epochs, and the reverse."""
    names = {field.name for field in fields(TrainingOptions)}
    changes = {name: value for name, value in given.items() if name in names}
    if changes.keys() & {"steps", "epochs"}:
        changes = {"steps": None, "epochs": None} | changes
    if changes.get("clip_norm") == 0:
        changes["clip_norm"] = None
    return replace(options, **changes)


def recipe_for(task: str | None, given: dict[str, Any]) -> Recipe:
    """The recipe of a task, or of text, after the given changes.

    A given preset replaces the recipe's sizes; the recipe's other changes to the model stay.
    """
    recipe = RECIPES[task or "text"]
    if "preset" in given:
        kept = {name: value for name, value in recipe.model.items() if name not in SIZES}
        recipe = replace(recipe, preset=given["preset"], model=kept)
    counts = {name: given[name] for name in ("train_count", "valid_count") if name in given}
    return replace(recipe, model=recipe.model | model_changes(given), options=changed_training(recipe.options, given),
                   **counts)


def notes() -> str:
    """The text below the options in the help: the recipes, and the options that a resumed run may change."""
    lines = ["\b", "Defaults:"]
    for name, recipe in RECIPES.items():
        options = recipe.options
        length = f"{options.steps:,} steps" if options.steps else f"{options.epochs} epochs"
        lines.append(f"  {name:9} {recipe.preset:5} {length:>11} of {options.batch_tokens:,} tokens, "
                     f"learning rate {options.learning_rate:g}, {options.schedule}")
    may_change = ", ".join(f"--{name.replace('_', '-')}" for name in TrainingOptions.MAY_CHANGE)
    resuming = ("A run that continues with --resume keeps its options, and makes the updates that it would have made "
                f"without the stop. Options without an effect on earlier updates may change: {may_change}, --device. "
                "(Another number of --shards, or without it of --threads or ranks, or of --micro-batches changes the "
                "dropout masks of later updates; "
                "--precision, --jit and --no-jit change their rounding. The schedules cosine and linear end at the "
                "last step, so more --steps or --epochs give later updates the rates of the longer schedule.)")
    return "\n".join([*lines, "", resuming])
