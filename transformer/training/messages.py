"""Messages that may get lost: a stream that cannot be written to costs the messages, never the training."""

import io
import os
import sys
from contextlib import suppress
from typing import Any, TextIO

LINE_EVERY = 30.0  # seconds between the lines of progress in a file


def shortened(text: str, most: int = 1000) -> str:
    """The text on one line, without its middle beyond `most` characters: what a message quotes may have any length."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most // 2]} … {line[-most // 2:]}"


def one_line(error: Exception) -> str:
    """The message of an exception on one short line."""
    return shortened(f"there is no {error}" if isinstance(error, KeyError) else str(error), 600)


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
        self.stream: Any = stream or io.TextIOBase()  # of which every method fails

    def write(self, text: str) -> int:
        """Write the text, if possible; returns its length."""
        self._attempt("write", text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if possible."""
        self._attempt("flush")

    def say(self, text: str) -> None:
        """Write a line at once, above the progress bar if there is one."""
        from tqdm import tqdm

        tqdm.write(text, file=self)
        self.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return bool(self._attempt("isatty"))

    def __getattr__(self, name: str) -> Any:
        """What else the stream has, such as its descriptor and its encoding."""
        return getattr(self.stream, name)

    def _attempt(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self.stream, method)(*arguments)
        except (OSError, ValueError):  # ValueError: the stream was closed, or cannot encode the text
            with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:  # a stream without a descriptor
                os.dup2(nowhere.fileno(), self.stream.fileno())
            self.stream = io.TextIOBase()
            return None


class Lines(Messages):
    """A stream for a bar outside a terminal: it writes each state of the bar as a line, without carriage returns."""

    def write(self, text: str) -> int:
        """Write a state as a line; drop the blanks that would erase one."""
        return super().write(f"{line}\n") if (line := text.strip()) else 0


def note(text: str) -> None:
    """Tell the user on standard error what is left out or mended."""
    Messages(sys.stderr).say(f"note: {shortened(text)}")


def progress_bar(total: float, step: int, messages: Any, shown: bool) -> Any:
    """A bar of updates on a terminal; elsewhere, in a file or a pipe, a line now and then."""
    from tqdm import tqdm

    terminal = messages.isatty()
    every = 0.5 if terminal else LINE_EVERY
    return tqdm(total=total, initial=step, unit="step", disable=not shown, dynamic_ncols=terminal,
                file=messages if terminal else Lines(messages), mininterval=every, maxinterval=2 * every)
