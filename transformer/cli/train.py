"""``train``: one command from a task, or from two files of text, to a trained model."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from transformer.cli import prepare, sources
from transformer.cli.command import (
    DEVICE,
    FILE,
    FLAG,
    FOLDER,
    HELD,
    NAME,
    OF_THREADS,
    OUTPUT,
    Command,
    command_line,
    options,
    quoted,
)
from transformer.cli.streams import output_may_be_lost
from transformer.data.tasks import TASKS
from transformer.data.vocabulary import SPECIALS
from transformer.distributed import Alone, launch
from transformer.training.checkpoints import load_run
from transformer.training.log import can_draw
from transformer.training.loop import TrainingResult, limits_reached
from transformer.training.loop import train as run_training
from transformer.training.messages import counted
from transformer.training.options import METRICS, SCHEDULES, TrainingOptions
from transformer.training.recipes import RECIPES, training_options
from transformer.training.run_folder import check_free, check_new, is_run
from transformer.training.signals import stopped_already, stopping_at_once
from transformer.training.threads import dividing_threads, usable_threads

EITHER = {"default": None}
TEXT = {"multiple": True, "metavar": "SRC TGT | TABLE"}


def notes() -> str:
    """The text below the options in the help: the recipes, and the options that a resumed run may change."""
    lines = ["\b", "Defaults:"]
    for name in TASKS:
        options = training_options(RECIPES[name])
        lines.append(f"  {name:9} {RECIPES[name]['preset']:5} {options.steps:,} steps of {options.batch_tokens:,} "
                     f"tokens, learning rate {options.learning_rate:g}, {options.schedule}")
    lines.append("  text      what suits the amount of text and --minutes, printed before the training begins")
    may_change = ", ".join(f"--{name.replace('_', '-')}" for name in TrainingOptions.MAY_CHANGE)
    resuming = ("A run that continues with --resume keeps its options, and makes the updates that it would have made "
                f"without the stop. Options without an effect on earlier updates may change: {may_change}, --device. "
                "(Another number of --shards, or without it of --threads or ranks, changes the dropout masks of later "
                "updates. The schedules wsd and cosine end at the last step, so more --steps, --epochs or --minutes "
                "give later updates the rates of that length.)")
    return "\n".join([*lines, "", resuming])


class Training(Command):
    """A training command: a failed print does not stop it; a signal ends it with one line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse ``--train a b`` as ``--train a --train b``: options for text have one or two values."""
        names = [f"--{name}" for name in sources.TEXTS]
        found, name = list[str](), ""
        for argument in args:
            if argument.startswith("-") and argument != "-":
                if found and found[-1] in names:
                    raise click.UsageError(f"Option {found[-1]!r} requires an argument.")
                name = argument if argument in names else ""
            elif name and found[-1] != name:
                found.append(name)
            found.append(argument)
        return super().parse_args(ctx, found)

    def invoke(self, ctx: click.Context) -> Any:
        """Train; the exit status after a signal is 128 plus its number."""
        try:
            with output_may_be_lost(), stopping_at_once():
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            with stopped_already():
                ranks, line = launch.world(), "stopped"
                if ranks.rank == 0:  # the others need not see the folder
                    line += f"; go on with  {again()}" if is_run(ctx.params["out"]) else "; there is no checkpoint yet"
                ranks.end(line, 128 + getattr(error, "number", signal.SIGINT))


def again() -> str:
    """The command that goes on with what this one began: the same, but for ``train``."""
    values = click.get_current_context().params
    return command_line({"out": values["out"], "resume": True} if "resume" in values else values)


# An option that is not given is None: its value comes from the task's recipe or, in a resumed run, from that run. It
# has a second name where the attribute that it sets, of TransformerConfig or TrainingOptions, has another.
OPTIONS = [
    *options(
        "Data (one of --task and --train)",
        ("--task", {"type": click.Choice([*TASKS]), "metavar": "NAME"}, f"A generated task: {', '.join(TASKS)}."),
        ("--train", TEXT,
         "Parallel text to train on: two files, or a table with tabs; UTF-8, perhaps in gzip. - is standard input."),
        ("--valid", TEXT, "Parallel text to validate on; without it a tenth of the training text is held out."),
        ("--tokens", ("words", "characters", "bpe"), "How text is cut into tokens; bpe: byte pairs."),
        ("--source-tokenizer", FILE, "A tokenizer.json of Hugging Face that cuts the source instead."),
        ("--target-tokenizer", FILE, "The same for the target."),
        ("--vocab-size", click.IntRange(len(SPECIALS) + 1), "The most tokens of a vocabulary."),
        ("--shared-vocab/--separate-vocab", EITHER, "One vocabulary and embedding for both sides, or two."),
        ("--train-count", HELD, "Generated pairs to train on."),
        ("--valid-count", HELD, "Generated pairs to validate on.")),
    *options(
        "Model",
        ("--config preset", ("tiny", "small", "base"),
         "A preset of sizes: tiny (2+2 layers, d_model 64), small (3+3, 256), base (6+6, 512: the paper's)."),
        ("--d-model", int, "Features of a token between the layers."),
        ("--heads num_heads", int, "Attention heads; they divide d_model."),
        ("--layers", int, "Layers of the encoder and of the decoder, each."),
        ("--encoder-layers num_encoder_layers", int, "Layers of the encoder."),
        ("--decoder-layers num_decoder_layers", int, "Layers of the decoder."),
        ("--d-ff", int, "Inner features of the feed-forward layers."),
        ("--dropout", click.FloatRange(0, 1, max_open=True), "Probability of dropping a feature or a weight."),
        ("--norm", ("pre", "post"), "Normalise before each sublayer, or after it, as the paper does."),
        ("--activation", ("relu", "gelu", "gelu_tanh", "silu"), "Activation of the feed-forward layers."),
        ("--positions", ("sinusoidal", "learned"), "How positions are encoded."),
        ("--max-length", int, "The longest sentence, in tokens with end-of-sentence."),
        ("--tie/--no-tie tie_output", EITHER, "Use the target embedding as the output projection.")),
    *options(
        "Training",
        ("--steps", int, "Updates to make."),
        ("--epochs", int, "Passes over the data to make."),
        ("--minutes", float, "End after this much training time."),
        ("--batch-tokens", int, "Size of a batch: sentences × the longest, in tokens."),
        ("--accumulate", int, "Gradient accumulation: batches for one update."),
        ("--learning-rate", float, "The highest learning rate."),
        ("--warmup warmup_steps", int, "Updates until the highest rate."),
        ("--schedule", SCHEDULES, "How the rate falls after warm-up; wsd: in the last fifth of the run."),
        ("--label-smoothing", float, "Probability spread over all tokens."),
        ("--clip clip_norm", float, "Largest gradient norm; 0 does not clip."),
        ("--weight-decay", float, "Decoupled weight decay, as in AdamW."),
        ("--adam-beta2", float, "Decay of Adam's second moment."),
        ("--seed", int, "Seed of data, parameters, dropout.")),
    *options(
        "Validation and checkpoints",
        ("--valid-every", int, "Updates between validations; each saves a checkpoint."),
        ("--valid-first", int, "Updates until a first validation before those."),
        ("--valid-sentences", int, "Sentences to translate in each validation."),
        ("--metric valid_metric", METRICS, "The metric that chooses the best model."),
        ("--keep", int, "Checkpoints to keep, beside the best."),
        ("--average", int, "At the end, average the last N checkpoints, and keep the average if it is better.")),
    *options(
        "Run",
        ("--out", FOLDER | {"required": True}, "The folder for checkpoints, log.csv and history.png."),
        ("--resume", FLAG, "Continue the run in DIR from its latest checkpoint."),
        ("--resume-from", NAME,
         "As --resume, from a checkpoint such as 00000400; later ones are removed once the run saves."),
        ("--quiet", FLAG, "Show no progress bar."),
        ("--profile", OUTPUT,
         "Measure some updates, operation by operation; write a trace that ui.perfetto.dev opens.")),
    DEVICE,
    OF_THREADS,
    *options(
        "Machine",
        ("--shards", int,
         "Parts of each batch, on whose number the updates depend.  [default: one for each thread of each rank]"))]


@click.command(cls=Training, epilog=notes(), params=OPTIONS)
def train(out: Path, resume: bool, resume_from: str | None, quiet: bool,
          profile: Path | None, device: str, ranks: Alone, **values: Any) -> None:
    """Train a Transformer. Ctrl-C, SIGTERM or SIGHUP stops it and saves a checkpoint.

    \b
    python -m transformer train --task reverse --out runs/reverse
    python -m transformer train --train pairs.tsv --minutes 30 --out runs/fr
    python -m transformer train --train train.en train.ja --valid dev.en dev.ja --out runs/enja
    python -m transformer train --out runs/enja --resume
    """
    given = {name: value for name, value in values.items() if value not in (None, ())}
    which = resume_from or "latest" * resume
    sources.check_readable((path for side in sources.TEXTS for path in given.get(side, ())), ranks)
    ranks.first(lambda: check_free(out))
    if which:
        prepared = prepare.take_up(out, load_run(out, which, ranks)[0], given)
    else:
        ranks.first(lambda: check_new(out))  # before the data is prepared, which may take minutes
        prepared = prepare.begin(given, out, ranks, device)
    run = prepared.run
    options = run.options
    if options.threads is None and device == "cpu" and not which:
        # Those that divide a batch: more would gain little, and lose much where another program keeps a core busy.
        threads = dividing_threads(run.config, usable_threads(ranks.local_size), options.batch_tokens // ranks.size)
        options = replace(options, threads=ranks.first(lambda: threads))
    if device == "cpu" and options.threads:
        each = f"{ranks.size} ranks, each with " if ranks.size > 1 else ""
        prepared.said.append(each + counted(options.threads, "thread"))
    before = run.progress.step if which else None
    result = run_training(out, run.config, run.source_tokenizer, run.target_tokenizer, prepared.train, prepared.valid,
                          options, run.data, device, which or False, not quiet,
                          lambda: click.echo("\n".join(prepared.said)), profile, ranks)
    click.echo(_report(out, result, options, result.progress.step == before))
    if not can_draw():
        click.echo("no history.png: it needs matplotlib, from  pip install 'minigrad-transformer[plot]'", err=True)


def _report(out: Path, result: TrainingResult, options: TrainingOptions, nothing_to_do: bool) -> str:
    """How the run ended."""
    length = f"{counted(result.progress.step, 'step')} in {result.progress.seconds / 60:.1f} minutes"
    if nothing_to_do:
        more = " ".join(f"--{name} N" for name in limits_reached(result.progress, options))
        lines = [f"had already finished: {length}; to go on, give it more:  {again()} {more}"]
    else:
        averaged = result.kept.partition("-average-")[2]
        average = f", the average of the last {averaged} checkpoints" if averaged else ""
        lines = [f"{length}; kept {result.kept}{average}: {result.best.describe(options.valid_metric)}"]
        if result.by_alpha:
            scores = ", ".join(f"{bleu:.2f} at {alpha:g}" for alpha, bleu in result.by_alpha.items())
            lines.append(f"with --beam 4 BLEU {scores}; from now on --alpha is {result.translator.alpha:g}")
    return "\n".join([*lines, f"{out} is ready; now try  python -m transformer translate {quoted(out)}"])
