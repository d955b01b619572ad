"""``train``: one command from a task, or from two files of text, to a trained model."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from transformer.checkpoints import Run, RunError, is_run, load_run
from transformer.cli.command import INTERRUPTED, Command, device_option, option, threads_option
from transformer.cli.training_options import (
    changed_training,
    model_changes,
    notes,
    recipe_for,
    training_options,
)
from transformer.config import TransformerConfig
from transformer.data.parallel import read_parallel
from transformer.data.tasks import get_task
from transformer.data.tokenizer import build_tokenizers
from transformer.options import TrainingOptions
from transformer.train import train as run_training

Pairs = list[tuple[str, str]]
OF_DATA = ("task", "train_count", "valid_count", "tokens", "vocab_size", "shared_vocab", "preset")


@click.command(cls=Command, epilog=notes())
@training_options
@option("--out", required=True, metavar="DIR", type=click.Path(path_type=Path), section="Run",
        help="The folder for checkpoints, log.csv and history.png.")
@option("--resume", is_flag=True, section="Run", help="Go on with the run in DIR from its latest checkpoint.")
@option("--quiet", is_flag=True, section="Run", help="Show no progress bar.")
@device_option
@threads_option
@click.pass_context
def train(context: click.Context, /, out: Path, resume: bool, quiet: bool, device: str, **values: Any) -> None:
    """Train a Transformer. Ctrl-C stops it and saves a checkpoint.

    \b
    python -m transformer train --task reverse --out runs/reverse
    python -m transformer train --train train.en train.ja --valid dev.en dev.ja --out runs/enja
    python -m transformer train --out runs/enja --resume
    """
    given = {name: value for name, value in values.items() if value is not None}
    if is_run(out) and not resume:  # before the data is prepared, which may take minutes
        raise RunError(f"{out}: already holds a training run; go on with --resume, or choose another folder")
    if resume:
        run, _, _ = load_run(out, "latest")
        pairs = _take_up(out, run, given, {str(p.name): p.opts[0] for p in context.command.params})
    else:
        run, pairs = _begin(given)
    options = TrainingOptions.from_json(run.training)
    sizes = run.config.source_vocab_size, run.config.target_vocab_size
    click.echo(f"{len(pairs[0]):,} training pairs, {len(pairs[1]):,} validation pairs; "
               f"vocabularies of {sizes[0]:,} and {sizes[1]:,} tokens")
    try:
        result = run_training(out, run.config, run.source_tokenizer, run.target_tokenizer, *pairs, options, run.data,
                              device, resume, progress=not quiet)
    except KeyboardInterrupt:
        go_on = f"go on with  python -m transformer train --out {shlex.quote(str(out))} --resume"
        click.echo(f"stopped; {go_on if is_run(out) else 'there is no checkpoint yet'}", err=True)
        context.exit(INTERRUPTED)
    click.echo(f"{result.progress.step:,} steps in {result.progress.seconds / 60:.1f} minutes; "
               f"the best: {result.best.describe(options.valid_metric)}")
    click.echo(f"wrote {out}; now try  python -m transformer translate {shlex.quote(str(out))}")


def _begin(given: dict[str, Any]) -> tuple[Run, tuple[Pairs, Pairs]]:
    """A new run, and its training and validation pairs."""
    task = given.get("task")
    if (task is None) == ("train" not in given):
        raise click.UsageError("give one of  --task NAME  and  --train SRC TGT --valid SRC TGT")
    if ("train" in given) != ("valid" in given):
        raise click.UsageError("--train and --valid belong together: --train SRC TGT --valid SRC TGT")
    if task is None and given.keys() & {"train_count", "valid_count"}:
        raise click.UsageError("--train-count and --valid-count are for generated tasks; files are used whole")
    with _mistakes():
        recipe = recipe_for(task, given)
        preset = getattr(TransformerConfig, recipe.preset)(8, 8)
        shared = given.get("shared_vocab", preset.share_embeddings)
        if task is None:
            data = _paths(given)
        else:
            data = {"task": task, "train_count": recipe.train_count, "valid_count": recipe.valid_count,
                    "seed": recipe.options.seed}
        kind = given.get("tokens", "words" if task is None else get_task(task).tokenizer_kind)
        size = given.get("vocab_size")
        data |= {"tokens": kind, "vocab_size": size, "shared_vocab": shared, "preset": recipe.preset}
        pairs = _read(data)
        sources, targets = zip(*pairs[0], strict=True)
        tokenizers = build_tokenizers(kind, sources, targets, shared, size)
        config = recipe.config(*tokenizers, share_embeddings=shared)
    return Run(config, *tokenizers, data, recipe.options.to_json()), pairs


def _take_up(out: Path, run: Run, given: dict[str, Any], options: dict[str, str]) -> tuple[Pairs, Pairs]:
    """The pairs of a run that goes on; changes in `run` what is given and may change. `options`: their names."""
    earlier = TrainingOptions.from_json(run.training)
    with _mistakes():
        training = changed_training(earlier, given)
    model = model_changes(given)
    changed = [name for name in OF_DATA if name in given and given[name] != run.data.get(name)]
    changed += [name for name in ("train", "valid") if name in given and name not in run.data]
    changed += [name for name in model if model[name] != getattr(run.config, name)]
    changed += training.changed_from(earlier)
    if changed:
        names = ", ".join(options[name] for name in changed)
        raise RunError(f"{out}: a resumed run may not change {names}; start a new one in another folder")
    run.training = training.to_json()
    run.data |= _paths(given)
    return _read(run.data)


def _paths(given: dict[str, Any]) -> dict[str, Any]:
    """The files that are given for training and validation, in a form that holds in any working directory."""
    return {side: [str(Path(path).resolve()) for path in given[side]] for side in ("train", "valid") if side in given}


def _read(data: dict[str, Any]) -> tuple[Pairs, Pairs]:
    """The training and validation pairs that a run's ``data`` describes."""
    if "task" not in data:
        return read_parallel(*data["train"]), read_parallel(*data["valid"])
    task = get_task(data["task"])
    train_pairs, valid_pairs = (task.pairs(split, data[f"{split}_count"], data["seed"]) for split in ("train", "valid"))
    return train_pairs, valid_pairs


@contextmanager
def _mistakes() -> Iterator[None]:
    """A ValueError inside is about what the user gave."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from error
