"""``info``: what is in the folder of a training run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from transformer.cli.command import FLAG, RUN, Command, options
from transformer.training.checkpoints import check, load_model
from transformer.training.log import Log
from transformer.training.run_folder import RunError, check_run, checkpoint_names, pointed

VERIFY = "Compare every file with its checksum instead; the exit status is 1 if something is damaged."


@click.command(cls=Command, params=[RUN, *options("Output", ("--verify", FLAG, VERIFY))])
@click.pass_context
def info(context: click.Context, /, folder: Path, verify: bool) -> None:
    """Show the model in DIR: its configuration, parameters and vocabularies, and its training so far."""
    if verify:
        check_run(folder)
        damaged = False
        for part, problem in _parts(folder):
            click.echo(f"{part:24} {problem or 'intact'}")
            damaged |= problem is not None
        context.exit(int(damaged))
    model, run = load_model(folder, which="latest")
    click.echo(f"{folder}: {model.num_parameters():,} parameters")
    for title, values in (("model", vars(run.config)), ("data", run.data), ("training", vars(run.options)),
                          ("so far", asdict(run.progress))):
        click.echo(f"\n{title}")
        for name, value in values.items():
            click.echo(f"  {name:20} {value}")


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
