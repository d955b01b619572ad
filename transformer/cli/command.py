"""What the commands share: errors as one line, help in sections, and the options for the machine."""

from __future__ import annotations

import math
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from minigrad import DeviceError
from minigrad.device import module_for, parse_device

from transformer.cli.streams import silent, standard_streams
from transformer.data.parallel_text import DataError
from transformer.decode.controls import PENALTIES, DecodingError
from transformer.decode.search import MAX_ALPHA
from transformer.distributed import ALONE, Alone, RankError, launch
from transformer.finite import NotFinite
from transformer.training.loop import TrainingError
from transformer.training.messages import shortened
from transformer.training.options import MOST, MOST_THREADS
from transformer.training.run_folder import RunError
from transformer.training.threads import limit_threads
from transformer.translator import ALPHA, Translator

F = TypeVar("F", bound=Callable[..., Any])
COUNT, THREADS, SEED = click.IntRange(1, MOST), click.IntRange(1, MOST_THREADS), click.IntRange(0, 2**64 - 1)
HELD, BEAM = click.IntRange(1, 10**7), click.IntRange(1, 10**4)  # pairs in memory; hypotheses
# Their messages are for users.
MISTAKES = (RunError, DataError, DecodingError, DeviceError, TrainingError, NotFinite, ImportError, launch.LaunchError,
            RankError)
# What helps where memory runs out, by a parameter that the command has.
REMEDIES = {"batch_tokens": "begin anew with a lower --batch-tokens or a smaller model",
            "batch_size": "lower --batch-size or --beam, or take a smaller model",
            "": "take a shorter text or a smaller model"}
# CUDA also needs memory for page-locked buffers, kernels and handles. Without it, CuPy raises RuntimeErrors that begin
# with the status: cudaError_t of NVIDIA's driver_types.h, CUresult of cuda.h, cublasStatus_t of cublas_api.h.
NO_MEMORY = "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "CUBLAS_STATUS_ALLOC_FAILED"
INTERRUPTED = 130  # the exit status of a program that Ctrl-C ended: 128 + SIGINT


class _OneLine(click.Command):
    """A command that reports a user's mistake as one line on standard error, with exit status 2, and no traceback."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command, and exit."""
        with standard_streams(), warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.simplefilter("ignore", RuntimeWarning)  # numbers that overflow have their own error
            try:
                status = super().main(*args, **{**kwargs, "standalone_mode": False})
            except click.Abort:
                sys.exit(INTERRUPTED)
            except click.ClickException as error:
                _fail(error.format_message())
            except MISTAKES as error:
                _fail(str(error))
            except OSError as error:
                _fail(f"{error.filename or 'standard input or output'}: {error.strerror or error}")
            except Exception as error:
                if launch.launched() == 1:
                    raise
                # A fault of ours, for which the other ranks must not wait.
                _fail(f"{type(error).__name__}: {error}", traceback.format_exc())
            sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, details: str = "") -> NoReturn:
    """End with a line on standard error, after its details; of several ranks, all end, with one line."""
    try:
        ranks = launch.world()
    except (launch.LaunchError, RankError):
        ranks = ALONE
    ranks.end(f"Error: {shortened(message)}", 2, details)


class Option(click.Option):
    """An option that stands in a section of the help."""

    def __init__(self, *args: Any, section: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class Command(_OneLine):
    """A command whose help lists its options in sections, in the order of their first options."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; if memory runs out, the error names the option to lower.

        A command whose work ranks do not divide runs on the first of them.
        """
        if "ranks" not in ctx.params:
            launch.start("off")
            if launch.number() > 0:
                return 0
        try:
            return super().invoke(ctx)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not str(error).startswith(NO_MEMORY):
                raise
            reason = " ".join(str(error).split()).rstrip(".")
            remedy = next(text for name, text in REMEDIES.items() if name in {"", *ctx.params})
            raise click.ClickException(f"out of memory{f' ({reason})' if reason else ''}; {remedy}") from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(getattr(parameter, "section", "Other"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class Group(_OneLine, click.Group):
    """A group of commands."""


class FiniteRange(click.FloatRange):
    """A finite number within bounds: ``nan`` and ``inf`` are mistakes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert the text to a number; any other text is a usage error."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


def quoted(path: Path) -> str:
    """The path as a shell reads it; with an escape for each byte, where it has some that no terminal shows."""
    if str(path).isprintable():
        return shlex.quote(str(path))
    return "$'" + "".join(f"\\{byte:03o}" for byte in os.fsencode(path)) + "'"


def option(*names: str, section: str, **attributes: Any) -> Callable[[F], F]:
    """``click.option`` in a section of the help, with its default shown."""
    return click.option(*names, cls=Option, section=section, show_default=True, **attributes)


# --------------------------------------------------------------------------- options of several commands


def writable(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Check, before the work begins, that a file can be written at its end; until then it keeps its contents."""
    if path is None or launch.world().rank > 0:  # of several ranks, the first writes
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


def _usable(context: click.Context, parameter: click.Parameter, device: str) -> str:
    try:
        device = launch.own_device(parse_device(device) if device != "cuda" else device)
        module_for(device)
        return parse_device(device)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error


def _limit_threads(context: click.Context, parameter: click.Parameter, threads: int | None) -> None:
    if threads is not None:
        context.with_resource(limit_threads(threads))


def _start_ranks(context: click.Context, parameter: click.Parameter, kind: str | None) -> Alone:
    ranks = launch.start(kind)
    ranks.compare(the_version_of_the_code=launch.code_digest)
    if ranks.rank > 0:  # the first speaks for all
        context.with_resource(silent())
    return ranks


DEFAULT_THREADS = "[default: all cores, at most 8; 1 for small models]"
device_option = option("--device", default="cpu", metavar="cpu|cuda|cuda:N", callback=_usable, section="Machine",
                       help="Where to compute; cuda:1 is the second GPU.")
distributed_option = option("--distributed", "ranks", type=click.Choice(launch.KINDS), is_eager=True, section="Machine",
                            callback=_start_ranks,
                            help="Work with the processes that mpirun or srun started: mpi or off.  [default: mpi "
                                 "under a launcher]")
threads_option = option("--threads", type=THREADS, metavar="N", callback=_limit_threads, expose_value=False,
                        section="Machine", help=f"Threads for matrix products.  {DEFAULT_THREADS}")
folder_argument = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
checkpoint_option = option("--checkpoint", metavar="best|latest|NAME", default="best", section="Machine",
                           help="Which weights to use: those that validated best, the newest, or a checkpoint's, such "
                                "as 00000400.")


def decoding_options(command: F) -> F:
    """The options of the commands that decode: beam, batch_size, alpha, max_length, those of `Controls`, and the
    machine's: checkpoint, device, ranks, threads.
    """
    section = "Decoding"
    for decorate in reversed([
        option("--beam", type=BEAM, default=1, metavar="N", section=section,
               help="Beam size: hypotheses that the search keeps open; 1 is greedy decoding."),
        option("--batch-size", type=COUNT, default=64, metavar="N", section=section,
               help="Sentences decoded together."),
        option("--alpha", type=FiniteRange(0, MAX_ALPHA), section=section,
               help="A log-probability is divided by ((5 + n) / 6)^alpha, n the length.  "
                    f"[default: what the training chose, or {ALPHA}]"),
        option("--max-length", type=COUNT, metavar="N", section=section,
               help="The most tokens of a translation.  [default: twice the source's plus 10]"),
        option("--min-length", type=click.IntRange(0, MOST), default=0, metavar="N", section=section,
               help="The fewest tokens of a translation."),
        option("--repetition-penalty", type=FiniteRange(*PENALTIES), default=1.0, metavar="P", section=section,
               help="Above 1, tokens that a translation has already become less probable: their positive logits are "
                    "divided by it, negative ones multiplied."),
        option("--no-repeat-ngram-size", type=click.IntRange(0, MOST), default=0, metavar="N", section=section,
               help="No N tokens follow one another twice in a translation; 0: they may."),
        checkpoint_option, device_option, distributed_option,
        option("--threads", type=THREADS, metavar="N", section="Machine",
               help=f"Threads that decode.  {DEFAULT_THREADS}"),
    ]):
        command = decorate(command)
    return command


def check_positions(translator: Translator, max_length: int | None) -> None:
    """Raise a UsageError if --max-length exceeds the model's positions."""
    positions = translator.model.config.max_length
    if max_length is not None and max_length > positions:
        raise click.UsageError(f"--max-length {max_length} is more than the model's {positions} positions")
