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
from transformer.training.options import MOST, TrainingOptions
from transformer.training.recipes import RECIPES

POSITIVE, NOT_NEGATIVE = FiniteRange(0, min_open=True), FiniteRange(0)
PROBABILITY = FiniteRange(0, 1, max_open=True)
WARM_UP = click.IntRange(0, MOST)
VOCABULARY = click.IntRange(len(SPECIALS) + 1, MOST)  # room for a token of the text
FILES = {"multiple": True, "metavar": "SRC TGT | TABLE", "type": click.Path(allow_dash=True)}
TOKENIZER = {"metavar": "FILE", "type": click.Path(exists=True, dir_okay=False)}


def _choice(*values: str) -> dict[str, Any]:
    return {"type": click.Choice(values)}


_TEXT = ("Parallel text to train on, UTF-8, perhaps in gzip: two files, line i of one the translation of line i of the "
         "other, or a table, source and target with a tab between them. - is standard input.")
# An option has a second name where the attribute that it sets, of TransformerConfig or TrainingOptions, has another.
_SECTIONS: dict[str, list[tuple[tuple[str, ...], dict[str, Any], str]]] = {
    "Data (one of --task and --train)": [
        (("--task",), {**_choice(*TASKS), "metavar": "NAME"}, f"A generated task: {', '.join(TASKS)}."),
        (("--train",), FILES, _TEXT),
        (("--valid",), FILES, "Parallel text to validate on; without it a tenth of the training text is held out."),
        (("--tokens",), _choice("words", "characters", "bpe"), "How text is cut into tokens; bpe: byte pairs."),
        (("--source-tokenizer",), TOKENIZER, "A tokenizer.json of Hugging Face that cuts the source instead."),
        (("--target-tokenizer",), TOKENIZER, "The same for the target."),
        (("--vocab-size",), {"type": VOCABULARY, "metavar": "N"}, "The most tokens of a vocabulary."),
        (("--shared-vocab/--separate-vocab",), {}, "One vocabulary and embedding for both sides, or two."),
        (("--train-count",), {"type": HELD, "metavar": "N"}, "Generated pairs to train on."),
        (("--valid-count",), {"type": HELD, "metavar": "N"}, "Generated pairs to validate on."),
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
        (("--schedule",), _choice("wsd", "inverse_sqrt", "cosine", "linear", "constant"),
         "How the rate falls after warm-up; wsd: in the last fifth of the run."),
        (("--label-smoothing",), {"type": PROBABILITY, "metavar": "P"}, "Probability spread over all tokens."),
        (("--clip", "clip_norm"), {"type": NOT_NEGATIVE, "metavar": "X"}, "Largest gradient norm; 0 does not clip."),
        (("--weight-decay",), {"type": NOT_NEGATIVE, "metavar": "X"}, "Decoupled weight decay, as in AdamW."),
        (("--adam-beta2",), {"type": PROBABILITY, "metavar": "X"}, "Decay of Adam's second moment."),
        (("--seed",), {"type": SEED, "metavar": "N"}, "Seed of data, parameters, dropout."),
    ],
    "Validation and checkpoints": [
        (("--valid-every",), {"type": COUNT, "metavar": "N"}, "Updates between validations; each saves a checkpoint."),
        (("--valid-first",), {"type": COUNT, "metavar": "N"}, "Updates until a first validation before those."),
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


def as_command(options: dict[str, Any]) -> str:
    """The options, by the names of their parameters, as they are written on a command line."""
    words = [f"--{name}={options[name]}" for name in ("threads", "shards", "precision") if name in options]
    for rows in _SECTIONS.values():
        for names, attributes, _ in rows:
            value = options.get(names[-1].removeprefix("--").partition("/")[0].replace("-", "_"))
            if isinstance(value, bool):
                words.append(names[0].split("/")[not value])
            elif value is not None:
                values = value if attributes.get("multiple") else [value]
                words += [names[0], *map(str, values)]
    return shlex.join(words)


def notes() -> str:
    """The text below the options in the help: the recipes, and the options that a resumed run may change."""
    lines = ["\b", "Defaults:"]
    for name in TASKS:
        recipe, options = RECIPES[name], RECIPES[name].options
        length = f"{options.steps:,} steps" if options.steps else f"{options.epochs} epochs"
        lines.append(f"  {name:9} {recipe.preset:5} {length:>11} of {options.batch_tokens:,} tokens, "
                     f"learning rate {options.learning_rate:g}, {options.schedule}")
    lines.append("  text      what suits the amount of text and --minutes, printed before the training begins")
    may_change = ", ".join(f"--{name.replace('_', '-')}" for name in TrainingOptions.MAY_CHANGE)
    resuming = ("A run that continues with --resume keeps its options, and makes the updates that it would have made "
                f"without the stop. Options without an effect on earlier updates may change: {may_change}, --device. "
                "(Another number of --shards, or without it of --threads or ranks, or of --micro-batches changes the "
                "dropout masks of later updates; "
                "--precision changes their rounding. The schedules wsd, cosine and linear end at "
                "the last step, so more --steps, --epochs or --minutes give later updates the rates of that length.)")
    return "\n".join([*lines, "", resuming])
