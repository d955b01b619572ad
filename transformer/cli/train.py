"""``train``: one command from a task, or from two files of text, to a trained model."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from transformer.cli import prepare, sources
from transformer.cli.command import (
    THREADS,
    Command,
    device_option,
    distributed_option,
    option,
    quoted,
    writable,
)
from transformer.cli.streams import output_may_be_lost
from transformer.cli.training_options import notes, training_options
from transformer.distributed import Alone, launch
from transformer.training.checkpoints import load_run
from transformer.training.log import can_draw
from transformer.training.loop import TrainingResult, limits_reached
from transformer.training.loop import train as run_training
from transformer.training.messages import counted
from transformer.training.options import TrainingOptions
from transformer.training.run_folder import check_free, check_new, is_run
from transformer.training.signals import stopped_already, stopping_at_once
from transformer.training.threads import usable_threads


class Training(Command):
    """A training command: a failed print does not stop it; a signal ends it with one line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click, after each file of --train and --valid has the option before it: they have one or two values."""
        return super().parse_args(ctx, one_value_each(args, ("--train", "--valid")))

    def again(self, params: dict[str, Any]) -> str:
        """The command that goes on, of the parameters of this one."""
        return _resume(params["out"])

    def invoke(self, ctx: click.Context) -> Any:
        """Train; the exit status after a signal is 128 plus its number."""
        try:
            with output_may_be_lost(), stopping_at_once():
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            with stopped_already():
                ranks, saved = launch.world(), is_run(ctx.params["out"])
                go_on = f"go on with  {self.again(ctx.params)}" if saved else "there is no checkpoint yet"
                line = "stopped" if ranks.rank else f"stopped; {go_on}"  # the first rank alone need see the folder
                ranks.end(line, 128 + getattr(error, "number", signal.SIGINT))


def one_value_each(args: Sequence[str], names: Sequence[str]) -> list[str]:
    """The arguments with ``--name a --name b`` in place of ``--name a b``, for options of these names.

    UsageError for an option of these names that has no value.
    """
    found, name = list[str](), ""
    for argument in args:
        if argument.startswith("-") and argument != "-":
            if found and found[-1] in names:
                raise click.UsageError(f"Option {found[-1]!r} requires an argument.")
            name = argument if argument in names else ""
        elif name and found[-1] != name:
            found.append(name)
        found.append(argument)
    return found


@click.command(cls=Training, epilog=notes())
@training_options
@option("--out", required=True, metavar="DIR", type=click.Path(path_type=Path), section="Run",
        help="The folder for checkpoints, log.csv and history.png.")
@option("--resume", is_flag=True, section="Run", help="Continue the run in DIR from its latest checkpoint.")
@option("--resume-from", metavar="NAME", section="Run",
        help="As --resume, from a checkpoint such as 00000400; later ones are removed once the run saves.")
@option("--quiet", is_flag=True, section="Run", help="Show no progress bar.")
@option("--profile", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", callback=writable, section="Run",
        help="Measure some updates, operation by operation; write a trace that ui.perfetto.dev opens.")
@device_option
@distributed_option
@option("--shards", type=THREADS, metavar="N", section="Machine",
        help="Parts of each batch, which threads and ranks compute; the updates depend on this number, and not on "
             "those.  [default: one for each thread of each rank]")
@option("--threads", type=THREADS, metavar="N", section="Machine",
        help="Threads that work on each batch.  [default: all cores, at most 8; 1 for small models]")
@click.pass_context
def train(context: click.Context, /, out: Path, resume: bool, resume_from: str | None, quiet: bool,
          profile: Path | None, device: str, ranks: Alone, **values: Any) -> None:
    """Train a Transformer. Ctrl-C, SIGTERM or SIGHUP stops it and saves a checkpoint.

    \b
    python -m transformer train --task reverse --out runs/reverse
    python -m transformer train --train pairs.tsv --minutes 30 --out runs/fr
    python -m transformer train --train train.en train.ja --valid dev.en dev.ja --out runs/enja
    python -m transformer train --out runs/enja --resume
    """
    given = {name: value for name, value in values.items() if value not in (None, ())}
    texts = {"train", "valid"}  # whose paths may be others on other machines
    ranks.compare(the_options=lambda: [resume, resume_from, {n: given[n] for n in sorted(given.keys() - texts)}])
    sources.check_readable((path for side in texts & given.keys() for path in given[side]), ranks)
    ranks.first(lambda: check_free(out))
    which = resume_from or "latest" * resume
    if which:
        names = {str(p.name): p.opts[0] for p in context.command.params}
        prepared = prepare.take_up(out, load_run(out, which, ranks)[0], given, names)
    else:
        ranks.first(lambda: check_new(out))  # before the data is prepared, which may take minutes
        prepared = prepare.begin(given, out, device, ranks)
    run = prepared.run
    options = run.options

    def announce() -> None:
        click.echo("\n".join(prepared.said))
        decided = "threads" in given or bool(which)
        together = f"{ranks.size} ranks, each with " if ranks.size > 1 else ""
        machine = [together + _describe_threads(options.threads, decided)] if options.threads else []
        if device == "cpu" and machine:
            click.echo("; ".join(machine))

    before = run.progress.step if which else None
    result = run_training(out, run.config, run.source_tokenizer, run.target_tokenizer, prepared.train, prepared.valid,
                          options, run.data, device, which or False, not quiet, announce, profile, ranks)
    _report(out, result, options, nothing_to_do=result.progress.step == before)


def _report(out: Path, result: TrainingResult, options: TrainingOptions, nothing_to_do: bool) -> None:
    """Print how the run ended."""
    length = f"{counted(result.progress.step, 'step')} in {result.progress.seconds / 60:.1f} minutes"
    if nothing_to_do:
        limits = {f"--{name}": getattr(options, name) for name in limits_reached(result.progress, options)}
        reached = " and ".join(f"{name} (it has {value:,})" for name, value in limits.items())
        click.echo(f"had already finished: {length}; to go on, give it more  {reached}:  "
                   f"{_resume(out)} {' '.join(f'{name} N' for name in limits)}")
    else:
        averaged = result.kept.partition("-average-")[2]
        average = f", the average of the last {averaged} checkpoints" if averaged else ""
        click.echo(f"{length}; kept {result.kept}{average}: {result.best.describe(options.valid_metric)}")
        if result.by_alpha:
            scores = ", ".join(f"{bleu:.2f} at {alpha:g}" for alpha, bleu in result.by_alpha.items())
            click.echo(f"with --beam 4 BLEU {scores}; {result.translator.alpha:g} is this run's default of --alpha now")
    if not can_draw():
        click.echo("no history.png: it needs matplotlib, from  pip install 'minigrad-transformer[plot]'", err=True)
    click.echo(f"{out} is ready; now try" if nothing_to_do else f"wrote {out}; now try", nl=False)
    click.echo(f"  python -m transformer translate {quoted(out)}")


def _resume(out: Path) -> str:
    return f"python -m transformer train --out {quoted(out)} --resume"


def _describe_threads(threads: int, decided: bool) -> str:
    """The number of threads in words; `decided`: the user or an earlier run chose it, not `suitable_threads`."""
    if threads > 1:
        return f"{threads} threads"
    return "1 thread" if decided or usable_threads() == 1 else "1 thread: more would gain nothing at this size"
