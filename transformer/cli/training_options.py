"""The options of ``train``, and their effect on the model's configuration and the training options.

An option that is not given is None: its value comes from the task's recipe or, in a resumed run, from that run.
"""

from __future__ import annotations

import shlex
from typing import Any

import click

from transformer.cli.command import COUNT, HELD, SEED, F, FiniteRange, option
from transformer.data.tasks import TASKS
from transformer.data.vocabulary import SPECIALS
from transformer.training.options import METRICS, MOST, SCHEDULES, TrainingOptions
from transformer.training.recipes import RECIPES

POSITIVE, NOT_NEGATIVE = FiniteRange(0, min_open=True), FiniteRange(0)
PROBABILITY = FiniteRange(0, 1, max_open=True)
VOCABULARY = click.IntRange(len(SPECIALS) + 1, MOST)  # room for a token of the text
FILES = {"multiple": True, "metavar": "SRC TGT | TABLE", "type": click.Path(allow_dash=True)}
TOKENIZER = {"metavar": "FILE", "type": click.Path(exists=True, dir_okay=False)}
_TEXT = ("Parallel text to train on, UTF-8, perhaps in gzip: two files, line i of one the translation of line i of the "
         "other, or a table, source and target with a tab between them. - is standard input.")
# An option has a second name where the attribute that it sets, of TransformerConfig or TrainingOptions, has another.
# Then come its values: choices, a type, or the attributes of a `click.Option`.
_SECTIONS: dict[str, list[tuple[str, Any, str]]] = {
    "Data (one of --task and --train)": [
        ("--task", {"type": click.Choice([*TASKS]), "metavar": "NAME"}, f"A generated task: {', '.join(TASKS)}."),
        ("--train", FILES, _TEXT),
        ("--valid", FILES, "Parallel text to validate on; without it a tenth of the training text is held out."),
        ("--tokens", ("words", "characters", "bpe"), "How text is cut into tokens; bpe: byte pairs."),
        ("--source-tokenizer", TOKENIZER, "A tokenizer.json of Hugging Face that cuts the source instead."),
        ("--target-tokenizer", TOKENIZER, "The same for the target."),
        ("--vocab-size", VOCABULARY, "The most tokens of a vocabulary."),
        ("--shared-vocab/--separate-vocab", {}, "One vocabulary and embedding for both sides, or two."),
        ("--train-count", HELD, "Generated pairs to train on."),
        ("--valid-count", HELD, "Generated pairs to validate on."),
    ],
    "Model": [
        ("--config preset", ("tiny", "small", "base"),
         "A preset of sizes: tiny (2+2 layers, d_model 64), small (3+3, 256), base (6+6, 512: the paper's)."),
        ("--d-model", COUNT, "Features of a token between the layers."),
        ("--heads num_heads", COUNT, "Attention heads; they divide d_model."),
        ("--layers", COUNT, "Layers of the encoder and of the decoder, each."),
        ("--encoder-layers num_encoder_layers", COUNT, "Layers of the encoder."),
        ("--decoder-layers num_decoder_layers", COUNT, "Layers of the decoder."),
        ("--d-ff", COUNT, "Inner features of the feed-forward layers."),
        ("--dropout", PROBABILITY, "Probability of dropping a feature or a weight."),
        ("--norm", ("pre", "post"), "Normalise before each sublayer, or after it, as the paper does."),
        ("--activation", ("relu", "gelu", "gelu_tanh", "silu"), "Activation of the feed-forward layers."),
        ("--positions", ("sinusoidal", "learned"), "How positions are encoded."),
        ("--max-length", COUNT, "The longest sentence, in tokens with end-of-sentence."),
        ("--tie/--no-tie tie_output", {}, "Use the target embedding as the output projection."),
    ],
    "Training": [
        ("--steps", COUNT, "Updates to make."),
        ("--epochs", COUNT, "Passes over the data to make."),
        ("--minutes", POSITIVE, "End after this much training time."),
        ("--batch-tokens", COUNT, "Size of a batch: sentences × the longest, in tokens."),
        ("--accumulate", COUNT, "Gradient accumulation: batches for one update."),
        ("--learning-rate", POSITIVE, "The highest learning rate."),
        ("--warmup warmup_steps", click.IntRange(0, MOST), "Updates until the highest rate."),
        ("--schedule", SCHEDULES,
         "How the rate falls after warm-up; wsd: in the last fifth of the run."),
        ("--label-smoothing", PROBABILITY, "Probability spread over all tokens."),
        ("--clip clip_norm", NOT_NEGATIVE, "Largest gradient norm; 0 does not clip."),
        ("--weight-decay", NOT_NEGATIVE, "Decoupled weight decay, as in AdamW."),
        ("--adam-beta2", PROBABILITY, "Decay of Adam's second moment."),
        ("--seed", SEED, "Seed of data, parameters, dropout."),
    ],
    "Validation and checkpoints": [
        ("--valid-every", COUNT, "Updates between validations; each saves a checkpoint."),
        ("--valid-first", COUNT, "Updates until a first validation before those."),
        ("--valid-sentences", COUNT, "Sentences to translate in each validation."),
        ("--metric valid_metric", METRICS, "The metric that chooses the best model."),
        ("--keep", COUNT, "Checkpoints to keep, beside the best."),
        ("--average", COUNT, "At the end, average the last N checkpoints, and keep the average if it is better."),
    ],
}


def training_options(command: F) -> F:
    """Give a command all of the options above."""
    decorators = [
        option(*names.split(), default=None, section=section, help=text, **_attributes(values))
        for section, rows in _SECTIONS.items() for names, values, text in rows
    ]
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def _attributes(values: Any) -> dict[str, Any]:
    if isinstance(values, tuple):
        return {"type": click.Choice(values)}
    number = {"type": values, "metavar": "X" if isinstance(values, FiniteRange) else "N"}
    return values if isinstance(values, dict) else number


def as_command(options: dict[str, Any]) -> str:
    """The options, by the names of their parameters, as they are written on a command line."""
    words = [f"--{name}={options[name]}" for name in ("threads", "shards") if name in options]
    for rows in _SECTIONS.values():
        for names, _, _ in rows:
            name, *_, attribute = names.split() * 2
            value = options.get(attribute.removeprefix("--").partition("/")[0].replace("-", "_"))
            if isinstance(value, bool):
                words.append(name.split("/")[not value])
            elif value is not None:
                words += [name, *map(str, value if isinstance(value, list | tuple) else [value])]
    return shlex.join(words)


def notes() -> str:
    """The text below the options in the help: the recipes, and the options that a resumed run may change."""
    lines = ["\b", "Defaults:"]
    for name in TASKS:
        preset, steps, tokens, rate = (RECIPES[name][key] for key in (
            "preset", "steps", "batch_tokens", "learning_rate"))
        lines.append(f"  {name:9} {preset:5} {steps:>5,} steps of {tokens:,} tokens, learning rate {rate:g}, "
                     f"{TrainingOptions.schedule}")
    lines.append("  text      what suits the amount of text and --minutes, printed before the training begins")
    may_change = ", ".join(f"--{name.replace('_', '-')}" for name in TrainingOptions.MAY_CHANGE)
    resuming = ("A run that continues with --resume keeps its options, and makes the updates that it would have made "
                f"without the stop. Options without an effect on earlier updates may change: {may_change}, --device. "
                "(Another number of --shards, or without it of --threads or ranks, changes the dropout masks of later "
                "updates. The schedules wsd and cosine end at the last step, so more --steps, --epochs or --minutes "
                "give later updates the rates of that length.)")
    return "\n".join([*lines, "", resuming])
