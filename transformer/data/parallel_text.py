"""Parallel text: two files, one sentence a line, line i of one the translation of line i of the other."""

import codecs
import os
import stat
import weakref
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from os import PathLike
from typing import NoReturn

import numpy as np

from transformer.data.indexed import Indexed

Path = str | PathLike[str]
Pair = tuple[str, str]

STRIDE = 32  # lines between two offsets that are held: one read of a few kilobytes finds any of them
PIECE = 1 << 20  # bytes that are read at a time where a file is read from its beginning to its end


class DataError(ValueError):
    """A data file is missing or malformed. The message is one line for the user: file, line and problem."""


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file, without their line endings.

    A line ends with a line feed or with carriage return and line feed, and with nothing else: form feeds,
    vertical tabs and U+2028, at which ``str.splitlines`` would split, stay inside a sentence, so that lines of
    two files stay paired. A byte order mark at the start is dropped, and the last line needs no ending.

    Raises:
        DataError: the file cannot be read, or is not UTF-8 (the message has the line).
        TypeError: `path` is no path.
    """
    try:
        path = os.fspath(path)  # TypeError for a number, which would name an open file
        if stat.S_ISCHR(os.stat(path).st_mode):
            raise DataError(f"{path} is a device, not a file of text")  # /dev/zero has no end
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    rows = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if not rows[-1]:
        rows.pop()
    lines = []
    for number, row in enumerate(rows, start=1):
        try:
            lines.append(row.removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as error:
            _not_utf8(path, number, row[error.start])
    return lines


class TextFile(Indexed[str]):
    """The lines of a UTF-8 file as `read_lines` gives them, read from the file whenever they are used.

    The object holds the open file and the offset of every 32nd line, a quarter of a byte for each line. Reading
    ``file[i]`` takes a few microseconds; a loop over all lines reads the file piece by piece. The file is read
    with ``pread``: pages of a memory map would count as memory of the process.

    Args:
        path: a regular file, not a pipe. It must stay as it is while the object is in use.

    Raises:
        DataError: the file cannot be read, or is not UTF-8 (the message has the line); later, on any use: the file
            has changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._file)
            self._state = self._now()
            self._index()
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error

    def _index(self) -> None:
        """Count the lines and note the offset of each 32nd, and of the end; DataError if a line is not UTF-8."""
        with open(self._file, "rb", closefd=False) as file:
            if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
                file.seek(0)
            offset = file.tell()
            starts, count, piece = array("q", [offset]), 0, b""
            while more := file.read(PIECE):
                piece = more + file.readline()  # whole lines, so that no character is cut
                try:
                    piece.decode("utf-8")
                except UnicodeDecodeError as error:
                    _not_utf8(self.path, count + piece[:error.start].count(b"\n") + 1, piece[error.start])
                ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == ord("\n")) + (offset + 1)
                starts.extend(ends[-(count + 1) % STRIDE::STRIDE].tolist())
                count += len(ends)
                offset += len(piece)
        self._count = count + (not piece.endswith(b"\n") and bool(piece))  # the last line needs no ending
        if starts[-1] != offset:
            starts.append(offset)
        self._starts = starts

    def __len__(self) -> int:
        return self._count

    def at(self, place: int) -> str:
        """A line."""
        block, line = divmod(place, STRIDE)
        return self._read(block, block + 1).split(b"\n", line + 1)[line].removesuffix(b"\r").decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        blocks = len(self._starts) - 1
        first = 0
        while first < blocks:
            last = first + 1
            while last < blocks and self._starts[last + 1] - self._starts[first] <= PIECE:
                last += 1
            data = self._read(first, last)
            lines = data.decode("utf-8").removesuffix("\n").split("\n")
            yield from (line.removesuffix("\r") for line in lines) if b"\r" in data else lines
            first = last

    def _read(self, first: int, last: int) -> bytes:
        """The blocks from `first` up to `last`, not included; a block has the lines from one offset to the next."""
        start, end = self._starts[first], self._starts[last]
        try:
            data = os.pread(self._file, end - start, start)
            same = self._now() == self._state and len(data) == end - start
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {error.strerror}") from error
        if not same:
            raise DataError(f"{self.path} has changed while it was in use; it must stay as it is until the end")
        return data

    def _now(self) -> tuple[int, int]:
        """What changes with the contents of the file: its size and the time of its last change."""
        status = os.fstat(self._file)
        return status.st_size, status.st_mtime_ns


class ParallelText(Indexed[Pair]):
    """Two parallel files as (source, target) pairs of lines, in order, read from the files whenever they are used.

    A line that is blank in both files is skipped. The memory does not grow with the text but by half a byte for each
    pair, see `TextFile`. A file that cannot be read by offset, such as a pipe, is loaded into memory.

    Args:
        source_path, target_path: the files.

    Raises:
        DataError: a file is missing, empty or not UTF-8, their line counts differ, or a line is blank in one
            only; later, on any use: a file has changed.
    """

    def __init__(self, source_path: Path, target_path: Path) -> None:
        self._sides = _lines_of(source_path), _lines_of(target_path)
        for path, lines in zip((source_path, target_path), self._sides, strict=True):
            if not any(line.strip() for line in lines):
                raise DataError(f"{path} is empty: it has no line with text")
        sources, targets = self._sides
        if len(sources) != len(targets):
            raise DataError(
                f"{source_path} has {len(sources):,} lines, {target_path} has {len(targets):,}; "
                "parallel files need the same number"
            )
        blank, blank_source, blank_target = array("q"), list[int](), list[int]()
        for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
            if not source.strip():
                (blank_source if target.strip() else blank).append(number)
            elif not target.strip():
                blank_target.append(number)
        for path, numbers in ((source_path, blank_source), (target_path, blank_target)):
            if numbers:
                where = _line_numbers([number + 1 for number in numbers])
                raise DataError(f"{path} is blank at {where}, where the other file has text")
        # The number of pairs before each line that is skipped: pair i is so many lines below line i as are <= i.
        self._pairs_before = np.array(blank, np.int64) - np.arange(len(blank))

    def __len__(self) -> int:
        return len(self._sides[0]) - len(self._pairs_before)

    def at(self, place: int) -> Pair:
        """A pair of lines."""
        line = place + int(np.searchsorted(self._pairs_before, place, side="right"))
        sources, targets = self._sides
        return sources[line], targets[line]

    def __iter__(self) -> Iterator[Pair]:
        return (pair for pair in zip(*self._sides, strict=True) if pair[0].strip())


def read_parallel(source_path: Path, target_path: Path) -> list[Pair]:
    """Load two parallel files, `source_path` and `target_path` (see ``read_lines``), as pairs of lines, in order.

    A line that is blank in both files is skipped. `ParallelText` has the same pairs without loading the files.

    Raises:
        DataError: a file is missing, empty or not UTF-8, their line counts differ, or a line is blank in one
            only.
    """
    return list(ParallelText(source_path, target_path))


def line_of_pair(path: Path, index: int) -> int:
    """The line, counted from 1, of the pair ``index``, counted from 0, that ``read_parallel`` read from ``path``."""
    with_text = (number for number, line in enumerate(_lines_of(path), start=1) if line.strip())
    return next(islice(with_text, index, None))


def _lines_of(path: Path) -> Sequence[str]:
    """The lines of a file, read when they are used if it can be read by offset; DataError as `read_lines`."""
    by_offset = hasattr(os, "pread") and os.path.isfile(os.fspath(path))
    return TextFile(path) if by_offset else read_lines(path)


def _not_utf8(path: Path, line: int, byte: int) -> NoReturn:
    raise DataError(f"{path}, line {line}: not valid UTF-8 (byte {byte:#04x}); convert the file")


def _line_numbers(numbers: list[int], shown: int = 5) -> str:
    words = ("line " if len(numbers) == 1 else "lines ") + ", ".join(map(str, numbers[:shown]))
    return words if len(numbers) <= shown else f"{words} and {len(numbers) - shown:,} more"
