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

    Standard output has a buffer, under ``python -u``, too: what is written to it arrives whole, or is an error.

    What standard output cannot take is dropped at the end: whoever wrote it has had the error.
    """
    _occupy_closed_descriptors()
    output = _buffered(sys.stdout)
    for stream in (output, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    error: Any = Messages(sys.stderr)
    try:
        with redirect_stdout(output), redirect_stderr(error):
            yield
    finally:
        Messages(output).flush()


@contextmanager
def output_may_be_lost() -> Iterator[None]:
    """Within the block, what is written to standard output may get lost, too."""
    output: Any = Messages(sys.stdout)
    with redirect_stdout(output):
        yield


@contextmanager
def silent() -> Iterator[None]:
    """Within the block, nothing is written to standard output and standard error."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def standard_input() -> TextIO:
    """Standard input; UsageError if the program was started without it."""
    if sys.stdin is None:
        raise click.UsageError("standard input is closed; lines are read from it")
    return sys.stdin


def _buffered(stream: Any) -> Any:
    """The stream; in place of one without a buffer, which may take a part of a text and say nothing, one with."""
    if isinstance(getattr(stream, "buffer", None), io.FileIO):
        return open(stream.fileno(), "w", buffering=1, encoding=stream.encoding, closefd=False)
    return stream


def _occupy_closed_descriptors() -> None:
    """Open the null device in place of closed standard streams: the next file would get the number of such a stream,
    and with it the messages of libraries."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free: this one
