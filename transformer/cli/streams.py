"""The standard streams of a command: closed ones, broken ones, and those that cannot encode what is written."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO

import click

from transformer.training.messages import Messages


@contextmanager
def standard_streams() -> Iterator[None]:
    """Within the block, messages on standard error may get lost, and characters that no stream encodes are escaped.

    What standard output cannot take is dropped at the end: whoever wrote it has had the error.
    """
    _occupy_closed_descriptors()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    error: Any = Messages(sys.stderr)
    try:
        with redirect_stderr(error):
            yield
    finally:
        Messages(sys.stdout).flush()


@contextmanager
def output_may_be_lost() -> Iterator[None]:
    """Within the block, what is written to standard output may get lost, too."""
    output: Any = Messages(sys.stdout)
    with redirect_stdout(output):
        yield


def opened(stream: TextIO | None, name: str) -> TextIO:
    """A standard stream, which is ``"input"`` or ``"output"``; UsageError if the program was started without it."""
    if stream is None:
        purpose = "lines are read from it" if name == "input" else "the result is written to it"
        raise click.UsageError(f"standard {name} is closed; {purpose}")
    return stream


def _occupy_closed_descriptors() -> None:
    """Open the null device in place of closed standard streams: the next file would get the number of such a stream,
    and with it the messages of libraries."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free: this one
