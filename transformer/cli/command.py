"""What the commands share: options in sections of the help, ranks, and mistakes as one line."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn

import click

from minigrad import DeviceError
from minigrad.device import module_for

from transformer.cli.streams import silent, standard_streams
from transformer.distributed import ALONE, RankError, launch
from transformer.training.messages import shortened
from transformer.training.options import MOST_THREADS
from transformer.translator import ALPHA

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
        with standard_streams():
            try:
                status = super().main(*args, **kwargs | {"standalone_mode": False})
            except click.Abort:
                sys.exit(INTERRUPTED)
            except click.ClickException as error:
                _fail(error.format_message())
            except OSError as error:
                _fail(f"{error.filename or 'standard input or output'}: {error.strerror or error}")
            except Exception as error:
                # The exceptions of `transformer` have messages for users.
                if isinstance(error, DeviceError | ImportError) or type(error).__module__.startswith("transformer."):
                    _fail(str(error))
                if launch.launched() == 1:
                    raise
                # A fault of ours, for which the other ranks must not wait.
                _fail(f"{type(error).__name__}: {error}", traceback.format_exc())
            sys.exit(status)


def _fail(message: str, details: str = "") -> NoReturn:
    """End with a line on standard error, after its details; of several ranks, all end, with one line."""
    try:
        ranks = launch.world()
    except (launch.LaunchError, RankError):
        ranks = ALONE
    ranks.end(f"Error: {shortened(message)}", 2, details)


class Group(_OneLine, click.Group):
    """A group of commands."""


class Command(_OneLine):
    """A command whose help lists its options in sections."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; if memory runs out, the error names the option to lower.

        What threads divide, ranks divide, too: a command with --threads gets those of its launcher as `ranks`. Another
        one runs on the first of them.
        """
        if sys.stdout is None:
            raise click.UsageError("standard output is closed; the result is written to it")
        if "threads" in ctx.params:
            ctx.params["ranks"] = ranks = launch.world()
            if ranks.rank > 0:  # the first speaks for all
                ctx.with_resource(silent())
        else:
            launch.world(alone=True)
            if launch.number() > 0:
                return 0
        try:
            return super().invoke(ctx)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not str(error).startswith(NO_MEMORY):
                raise
            reason = str(error).rstrip(".")
            remedy = next(text for name, text in REMEDIES.items() if name in {"", *ctx.params})
            raise click.ClickException(f"out of memory{f' ({reason})' if reason else ''}; {remedy}") from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        parameters = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        for section, own in groupby(parameters, lambda p: getattr(p, "section", "Other")):
            with formatter.section(section):
                formatter.write_dl([record for p in own if (record := p.get_help_record(ctx))])


@contextmanager
def mistakes() -> Iterator[None]:
    """Report a ValueError or IndexError inside the block as a usage error."""
    try:
        yield
    except (ValueError, IndexError) as error:
        raise click.UsageError(str(error)) from error


# --------------------------------------------------------------------------- options


class Option(click.Option):
    """An option in a section of the help, which shows its default.

    Args:
        section: its heading.
        names: as on the command line, with a blank between two.
        kind: a type, a tuple of choices, or attributes of `click.Option`.
        text: the help.
        default: the value where the option is not given.
    """

    def __init__(self, section: str, names: str, kind: Any, text: str, default: Any = None) -> None:
        kind = click.Choice(kind) if isinstance(kind, tuple) else kind
        attributes = kind if isinstance(kind, dict) else {"type": kind}
        attributes = attributes if default is None else attributes | {"default": default}
        super().__init__(names.split(), help=text, show_default=True, **attributes)
        self.section = section


def options(section: str, *rows: tuple[Any, ...]) -> list[click.Parameter]:
    """An `Option` of the section for each row of further arguments."""
    return [Option(section, *row) for row in rows]


def _writable(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Check, before the work begins, that a file can be made at its end; None on ranks that do not write."""
    if path and not (path.exists() or os.access(path.parent, os.W_OK)):
        raise click.BadParameter(f"there is no folder {path.parent} that can be written to", context, parameter)
    return None if launch.number() else path


def _usable(context: click.Context, parameter: click.Parameter, device: str) -> str:
    with mistakes():
        device = launch.own_device(device)
        module_for(device)
        return device


COUNT, HELD = click.IntRange(1), click.IntRange(1, 10**7)  # of pairs in memory
FILE = click.Path(dir_okay=False)
FOLDER: dict[str, Any] = {"metavar": "DIR", "type": click.Path(path_type=Path)}
FLAG, NAME = {"is_flag": True}, {"metavar": "NAME"}
OUTPUT = {"type": click.Path(dir_okay=False, writable=True, path_type=Path), "callback": _writable}
CHECKPOINT, DEVICE, OF_THREADS = options(
    "Machine",
    ("--checkpoint", {"metavar": "best|latest|NAME"},
     "Which weights to use: those that validated best, the newest, or a checkpoint's, such as 00000400.", "best"),
    ("--device", {"metavar": "cpu|cuda|cuda:N", "callback": _usable}, "Where to compute; cuda:1 is the second GPU.",
     "cpu"),
    ("--threads", click.IntRange(1, MOST_THREADS),
     "Threads that compute.  [default: all cores, at most 8; 1 for small models]"))
RUN, SOURCE = click.Argument(["folder"], **FOLDER), click.Argument(["source"])
TARGET = click.Argument(["target"], required=False)
# Of the commands that decode: beam, batch_size, alpha, max_length, those of `Controls`, the machine's.
DECODING = [*options(
    "Decoding",
    ("--beam", click.IntRange(1, 10**4), "Beam size: hypotheses that the search keeps open; 1 is greedy decoding.", 1),
    ("--batch-size", COUNT, "Sentences decoded together.", 64),
    ("--alpha", float,
     f"A log-probability is divided by ((5 + n) / 6)^alpha, n the length.  [default: the training's, or {ALPHA}]"),
    ("--max-length", int, "The most tokens of a translation.  [default: twice the source's plus 10]"),
    ("--min-length", int, "The fewest tokens of a translation.", 0),
    ("--repetition-penalty", float, "Above 1, tokens that a translation has already become less probable.", 1.0),
    ("--no-repeat-ngram-size", int, "No N tokens follow one another twice in a translation; 0: they may.", 0),
), CHECKPOINT, DEVICE, OF_THREADS]


# --------------------------------------------------------------------------- command lines in messages


def quoted(text: object) -> str:
    """The text as a shell reads it."""
    return shlex.quote(str(text))


def command_line(values: Mapping[str, Any]) -> str:
    """The line that runs the present command with these values of its options, by the names of parameters."""
    context, words = click.get_current_context(), []
    for parameter in context.command.params:
        value = values.get(parameter.name or "")
        if isinstance(value, bool):
            words += (parameter.opts if value else parameter.secondary_opts)[:1]
        elif value is not None:
            words += [parameter.opts[0], *(value if isinstance(value, list | tuple) else [value])]
    return " ".join(["python -m transformer", context.info_name or "", *map(quoted, words)])


def flags(names: Collection[str]) -> str:
    """The options of the present command with these names of parameters, as they are written on its line."""
    parameters = click.get_current_context().command.params
    return ", ".join(parameter.opts[0] for parameter in parameters if parameter.name in names)
