"""``info``: what is in the folder of a training run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from transformer.cli.command import Command, folder_argument, option
from transformer.cli.streams import opened
from transformer.training.checkpoints import Run, check, load_model
from transformer.training.log import Log
from transformer.training.run_folder import RunError, check_run, checkpoint_names, pointed


@click.command(cls=Command)
@folder_argument
@option("--verify", is_flag=True, section="Output",
        help="Read every file instead, and compare it with its checksum: a line for each checkpoint says whether it is "
             "intact. The exit status is 1 if something is damaged.")
@click.pass_context
def info(context: click.Context, /, folder: Path, verify: bool) -> None:
    """Show the model in DIR: its configuration, parameters and vocabularies, and its training so far."""
    opened(sys.stdout, "output")
    if verify:
        check_run(folder)
        damaged = False
        for part, problem in _parts(folder):
            click.echo(f"{part:24} {problem or 'intact'}")
            damaged |= problem is not None
        context.exit(int(damaged))
    model, run = load_model(folder, which="latest")
    click.echo(f"{folder}: {model.num_parameters():,} parameters")
    for title, values in (("model", asdict(run.config)), ("vocabularies", _vocabularies(run)), ("data", run.data),
                          ("training", run.options.to_json()), ("so far", _so_far(run))):
        click.echo(f"\n{title}")
        for name, value in values.items():
            click.echo(f"  {name:20} {_readable(value)}")


def _parts(folder: Path) -> Iterator[tuple[str, str | None]]:
    """The checkpoints of a run, the pointers and the log, each with what is wrong with it."""
    checked = {name: check(folder, name) for name in checkpoint_names(folder)}
    checked = {name: checked[name] for name in checkpoint_names(folder) if name in checked}  # a training removes some
    yield from checked.items()
    for pointer in ("latest", "best"):
        target = pointed(folder, pointer)  # a run that was killed early has none, which is no damage
        if target is not None:
            lost = f"{folder / pointer}: damaged: there is no such checkpoint"
            yield f"{pointer}: {target}", checked.get(target, lost)
    log = Log(folder / "log.csv")
    try:
        damaged = log.read()[1]
    except RunError as error:
        yield log.path.name, str(error)
    else:
        missing = None if log.path.is_file() else f"{log.path}: missing"
        yield log.path.name, f"{log.path}: {len(damaged):,} damaged lines" if damaged else missing


def _so_far(run: Run) -> dict[str, Any]:
    """The progress of the training, in readable units."""
    progress = run.progress
    known: dict[str, Any] = {"updates": progress.step, "epochs": progress.epoch, "minutes": progress.seconds / 60,
                             "target tokens": progress.tokens}
    if progress.best is not None:
        known["best"] = progress.best.describe(run.options.valid_metric)
    return known


def _vocabularies(run: Run) -> dict[str, str]:
    source, target = run.source_tokenizer, run.target_tokenizer
    sizes = [f"{len(tokenizer.vocabulary):,} {tokenizer.kind}" for tokenizer in (source, target)]
    return {"shared": sizes[0]} if source is target else {"source": sizes[0], "target": sizes[1]}


def _readable(value: Any) -> str:
    """A JSON value as readable text."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_readable(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(_readable, value))
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)
