"""Messages that may get lost: a stream that cannot be written to costs the messages, never the training."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO


def shortened(text: str, most: int = 1000) -> str:
    """The text on one line, without its middle beyond `most` characters: what a message quotes may have any length."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most // 2]} … {line[-most // 2:]}"


def counted(count: float, one: str, several: str = "") -> str:
    """A number of things: ``1 pair``, ``2,000 pairs``."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


class Messages:
    """A text stream that drops everything after its first failure to write.

    It fails where the reader of a pipe is gone, a terminal was closed, a disk is full. The null device then takes the
    place of the descriptor, so that the rest in the stream's buffer does not fail at the end of the program.

    Args:
        stream: the stream; None for one that the program was started without.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text, if possible; returns its length."""
        self._attempt(lambda stream: stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if possible."""
        self._attempt(lambda stream: stream.flush())

    def say(self, text: str) -> None:
        """Write a line at once, above the progress bar if there is one."""
        from tqdm import tqdm

        tqdm.write(text, file=self)
        self.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        with suppress(ValueError):  # the stream was closed
            return self.stream is not None and self.stream.isatty()
        return False

    def fileno(self) -> int:
        """The descriptor of the stream; OSError if it has none."""
        if self.stream is None:
            raise OSError("the stream is closed")
        return self.stream.fileno()

    @property
    def encoding(self) -> str:
        """The encoding of the stream."""
        return getattr(self.stream, "encoding", None) or "utf-8"

    def _attempt(self, work: Callable[[TextIO], object]) -> None:
        if self.stream is None:
            return
        try:
            work(self.stream)
        except (OSError, ValueError):  # ValueError: the stream was closed, or cannot encode the text
            stream, self.stream = self.stream, None
            with suppress(OSError, ValueError):  # a stream without a descriptor
                _discard(stream.fileno())


def note(text: str) -> None:
    """Tell the user on standard error what is left out or mended."""
    Messages(sys.stderr).say(f"note: {shortened(text)}")


def _discard(descriptor: int) -> None:
    """Put the null device in the place of a descriptor."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
