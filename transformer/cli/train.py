"""``train``: one command from a task, or from two files of text, to a trained model."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from minigrad import kernels

from transformer.cli import sources
from transformer.cli.command import KERNELS_COST, THREADS, Command, device_option, distributed_option, option
from transformer.cli.streams import output_may_be_lost
from transformer.cli.training_options import (
    changed_training,
    model_changes,
    notes,
    recipe_for,
    training_options,
)
from transformer.data.tasks import get_task
from transformer.data.tokenizer import BytePairTokenizer, build_tokenizers
from transformer.distributed import Alone, launch
from transformer.model import TransformerConfig
from transformer.training.checkpoints import Run, load_description
from transformer.training.lock import check_free
from transformer.training.log import can_draw
from transformer.training.loop import TrainingResult, limits_reached
from transformer.training.loop import train as run_training
from transformer.training.memory import require_memory
from transformer.training.options import TrainingOptions
from transformer.training.out_of_memory import ModelDoesNotFit, least_memory, memory_or
from transformer.training.pairs import PairTooLong
from transformer.training.run_folder import RunError, check_new, is_run
from transformer.training.signals import stopped_already, stopping_at_once
from transformer.training.threads import suitable_threads, usable_threads

OF_DATA = ("task", "train_count", "valid_count", "tokens", "vocab_size", "shared_vocab", "preset")


def _writable(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Check, before training begins, that the file can be written; an existing file keeps its contents until then."""
    if path is None or launch.world().rank > 0:  # of several ranks, the first measures
        return None
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}", context, parameter)
    new = not os.path.lexists(path)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)))  # of a pipe, too
        if new:
            path.unlink()
    except OSError as error:
        raise click.BadParameter(f"cannot write to {path}: {error.strerror}", context, parameter) from error
    return path


class Training(Command):
    """A command of which no message is worth its training, and which a signal ends with one line."""

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


@click.command(cls=Training, epilog=notes())
@training_options
@option("--out", required=True, metavar="DIR", type=click.Path(path_type=Path), section="Run",
        help="The folder for checkpoints, log.csv and history.png.")
@option("--resume", is_flag=True, section="Run", help="Continue the run in DIR from its latest checkpoint.")
@option("--resume-from", metavar="NAME", section="Run",
        help="As --resume, from a checkpoint such as 00000400; later ones are removed once the run saves.")
@option("--quiet", is_flag=True, section="Run", help="Show no progress bar.")
@option("--profile", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", callback=_writable, section="Run",
        help="Measure some updates, operation by operation; write a trace that ui.perfetto.dev opens.")
@device_option
@distributed_option
@option("--shards", type=THREADS, metavar="N", section="Machine",
        help="Parts of each batch, which threads and ranks compute; the updates depend on this number, and not on "
             "those.  [default: one for each thread of each rank]")
@option("--threads", type=THREADS, metavar="N", section="Machine",
        help="Threads that work on each batch.  [default: all cores, at most 8; 1 for small models]")
@option("--precision", type=click.Choice(["float32", "tf32", "float16"]), section="Machine",
        help="Precision of updates: tf32 lets a GPU round the operands of float32 products to TF32's 10 bits; float16 "
             "computes products in float16, slowly on a CPU, with weights in float32.  [default: float32]")
@option("--jit/--no-jit", default=None, section="Machine",
        help=f"Run hot functions as compiled kernels: a step takes 3 to 12 % less time. {KERNELS_COST}")
@click.pass_context
def train(context: click.Context, /, out: Path, resume: bool, resume_from: str | None, quiet: bool,
          profile: Path | None, device: str, ranks: Alone, **values: Any) -> None:
    """Train a Transformer. Ctrl-C, SIGTERM or SIGHUP stops it and saves a checkpoint.

    \b
    python -m transformer train --task reverse --out runs/reverse
    python -m transformer train --train train.en train.ja --valid dev.en dev.ja --out runs/enja
    python -m transformer train --out runs/enja --resume
    """
    given = {name: value for name, value in values.items() if value is not None}
    texts = {"train", "valid"}  # whose paths may be others on other machines
    ranks.compare(the_options=lambda: [resume, resume_from, {n: given[n] for n in sorted(given.keys() - texts)}])
    sources.check_readable((path for side in texts & given.keys() for path in given[side]), ranks)
    ranks.first(lambda: check_free(out))
    which = resume_from or "latest" * resume
    if which:
        run = load_description(out, which, ranks)
        pairs = _take_up(out, run, given, {str(p.name): p.opts[0] for p in context.command.params})
    else:
        ranks.first(lambda: check_new(out))  # before the data is prepared, which may take minutes
        run, pairs = _begin(given, device, ranks)
    options = TrainingOptions.from_json(run.training)
    if options.jit:
        _check_kernels(out, given)
    sizes = run.config.source_vocab_size, run.config.target_vocab_size

    def announce() -> None:
        click.echo(f"{len(pairs[0]):,} training pairs, {len(pairs[1]):,} validation pairs; "
                   f"vocabularies of {sizes[0]:,} and {sizes[1]:,} tokens")
        decided = "threads" in given or bool(which)
        together = f"{ranks.size} ranks, each with " if ranks.size > 1 else ""
        machine = [together + _describe_threads(options.threads, decided)] if options.threads else []
        machine += [_describe_kernels()] if options.jit else []
        if device == "cpu" and machine:
            click.echo("; ".join(machine))

    before = run.progress.get("step") if which else None
    try:
        result = run_training(out, run.config, run.source_tokenizer, run.target_tokenizer, *pairs, options, run.data,
                              device, which or False, not quiet, announce, profile, ranks)
    except PairTooLong as error:
        raise RunError(sources.located(run.data, error)) from error
    _report(out, result, options, nothing_to_do=result.progress.step == before)


def _report(out: Path, result: TrainingResult, options: TrainingOptions, nothing_to_do: bool) -> None:
    """Print how the run ended."""
    length = f"{result.progress.step:,} steps in {result.progress.seconds / 60:.1f} minutes"
    if nothing_to_do:
        limits = {f"--{name}": getattr(options, name) for name in limits_reached(result.progress, options)}
        reached = " and ".join(f"{name} (it has {value:,})" for name, value in limits.items())
        click.echo(f"had already finished: {length}; to go on, give it more  {reached}:  "
                   f"{_resume(out)} {' '.join(f'{name} N' for name in limits)}")
    else:
        click.echo(f"{length}; the best: {result.best.describe(options.valid_metric)}")
    if not can_draw():
        click.echo("no history.png: it needs matplotlib, from  pip install 'minigrad-transformer[plot]'", err=True)
    click.echo(f"{out} is ready; now try" if nothing_to_do else f"wrote {out}; now try", nl=False)
    click.echo(f"  python -m transformer translate {quoted(out)}")


def _resume(out: Path) -> str:
    return f"python -m transformer train --out {quoted(out)} --resume"


def quoted(path: Path) -> str:
    """The path as a shell reads it; with an escape for each byte, where it has some that no terminal shows."""
    if str(path).isprintable():
        return shlex.quote(str(path))
    return "$'" + "".join(f"\\{byte:03o}" for byte in os.fsencode(path)) + "'"


def _describe_threads(threads: int, decided: bool) -> str:
    """The number of threads in words; `decided`: the user or an earlier run chose it, not `suitable_threads`."""
    if threads > 1:
        return f"{threads} threads"
    return "1 thread" if decided or usable_threads() == 1 else "1 thread: more would gain nothing at this size"


def _check_kernels(out: Path, given: dict[str, Any]) -> None:
    """Raise ImportError without Numba; if the resumed run chose the kernels, the message offers --no-jit."""
    try:
        kernels.load()
    except ImportError as error:
        if "jit" in given:
            raise
        raise ImportError(f"{out} was trained with compiled kernels; --no-jit goes on without: {error}") from error


def _describe_kernels() -> str:
    return f"compiled kernels{'' if kernels.compiled_before() else ': they are compiled first, once, in about 6 s'}"


def _begin(given: dict[str, Any], device: str, ranks: Alone) -> tuple[Run, tuple[sources.Pairs, sources.Pairs]]:
    """A new run, and its training and validation pairs."""
    _check_data(given)
    task = given.get("task")
    with _mistakes():
        recipe = recipe_for(task, given)
        preset = getattr(TransformerConfig, recipe.preset)(8, 8, **recipe.model)
        with memory_or(ModelDoesNotFit()):  # now, before the data is prepared
            require_memory(least_memory(preset, device))
        shared = given.get("shared_vocab", preset.share_embeddings)
        data = sources.files(given) if task is None else recipe.data(task, recipe.options.seed)
        kind = given.get("tokens", "words" if task is None else get_task(task).tokenizer_kind)
        size = given.get("vocab_size")
        data |= {"tokens": kind, "vocab_size": size, "shared_vocab": shared, "preset": recipe.preset}
        if kind == "bpe" and size is not None and size < BytePairTokenizer.SMALLEST_SIZE:
            raise click.UsageError(f"--vocab-size {size} is too small for --tokens bpe: 256 bytes and 4 special tokens "
                                   f"need {BytePairTokenizer.SMALLEST_SIZE}")
        pairs = sources.read(data)
        texts = (source for source, _ in pairs[0]), (target for _, target in pairs[0])
        tokenizers = build_tokenizers(kind, *texts, shared, size)
        config = recipe.config(*tokenizers, share_embeddings=shared)
    options = recipe.options
    if options.threads is None and device == "cpu":
        threads = suitable_threads(config, options.batch_tokens // ranks.size, ranks.local_size)
        options = replace(options, threads=ranks.broadcast(threads))
    with _mistakes():
        return Run(config, *tokenizers, data, options.to_json()), pairs


def _check_data(given: dict[str, Any]) -> None:
    """UsageError unless the options name a task, or files for training and for validation."""
    if ("task" in given) == ("train" in given):
        raise click.UsageError("give one of  --task NAME  and  --train SRC TGT --valid SRC TGT")
    if ("train" in given) != ("valid" in given):
        raise click.UsageError("--train and --valid belong together: --train SRC TGT --valid SRC TGT")
    if "train" in given and given.keys() & {"train_count", "valid_count"}:
        raise click.UsageError("--train-count and --valid-count are for generated tasks; files are used whole")


def _take_up(out: Path, run: Run, given: dict[str, Any],
             options: dict[str, str]) -> tuple[sources.Pairs, sources.Pairs]:
    """The pairs of a resumed run, after the given changes to `run`; `options` has the option of each parameter."""
    earlier = TrainingOptions.from_json(run.training)
    with _mistakes():
        training = changed_training(earlier, given)
    if not sources.is_described(run.data):
        run.data |= _describe(out, given, earlier)
    model = model_changes(given)
    changed = [name for name in OF_DATA if name in given and given[name] != run.data.get(name)]
    changed += [name for name in ("train", "valid") if name in given and name not in run.data]
    changed += [name for name in model if model[name] != getattr(run.config, name)]
    changed += training.changed_from(earlier)
    if changed:
        names = ", ".join(options[name] for name in changed)
        raise RunError(f"{out}: a resumed run may not change {names}; start a new one in another folder")
    run.training = training.to_json()
    run.data |= sources.files(given)
    return sources.read(run.data)


def _describe(out: Path, given: dict[str, Any], options: TrainingOptions) -> dict[str, Any]:
    """The description of the data from the options, for a run without one; `restore` compares the pairs."""
    if not given.keys() & {"task", "train", "valid"}:
        raise RunError(f"{out}: the run has no description of its data; resume it with the program that began it, or "
                       "name the same data:  --task NAME  or  --train SRC TGT --valid SRC TGT")
    _check_data(given)
    return recipe_for(given["task"], given).data(given["task"], options.seed) if "task" in given else {}


@contextmanager
def _mistakes() -> Iterator[None]:
    """Report a ValueError inside the block as a usage error."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from error
