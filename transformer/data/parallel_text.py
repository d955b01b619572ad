"""Parallel text: two files, line i of one the translation of line i of the other, or a table of two columns."""

import codecs
import gzip
import io
import os
import stat
import sys
import weakref
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from hashlib import blake2b
from os import PathLike
from typing import NoReturn

import numpy as np

from transformer.data.indexed import Indexed, Selected

Path = str | PathLike[str]
Pair = tuple[str, str]

STRIDE = 32  # lines between two offsets that are held: one read of a few kilobytes finds any of them
PIECE = 1 << 20  # bytes that are read at a time where a file is read from its beginning to its end
GZIP = b"\x1f\x8b"  # the first bytes of a file that gzip has written
MOST_HELD_OUT = 1000  # pairs, about: more would make each validation slower, and its loss hardly more exact


class DataError(ValueError):
    """A data file is missing or malformed. The message is one line for the user: file, line and problem."""


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file, plain or written by gzip, without their line endings; ``"-"`` is standard input.

    A line ends with a line feed or with carriage return and line feed, and with nothing else: form feeds,
    vertical tabs and U+2028, at which ``str.splitlines`` would split, stay inside a sentence, so that lines of
    two files stay paired. A byte order mark at the start is dropped, and the last line needs no ending.

    Raises:
        DataError: the file cannot be read, is damaged, or is not UTF-8 (the message has the line).
        TypeError: `path` is no path.
    """
    path = os.fspath(path)  # TypeError for a number, which would name an open file
    lines: list[str] = []
    try:
        if path != "-" and stat.S_ISCHR(os.stat(path).st_mode):
            raise DataError(f"{path} is a device, not a file of text")  # /dev/zero has no end
        with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file:
            data = file.read()
        packed = data.startswith(GZIP)
        for row in gzip.GzipFile(fileobj=io.BytesIO(data)) if packed else io.BytesIO(data):
            text = row if lines else row.removeprefix(codecs.BOM_UTF8)
            if text:
                lines.append(text.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8"))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{_name(path)} is damaged: gzip cannot read it to its end ({error})") from error
    except OSError as error:
        raise DataError(f"cannot read {_name(path)}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        _not_utf8(path, len(lines) + 1, error)
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
                    _not_utf8(self.path, count + piece[:error.start].count(b"\n") + 1, error)
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
    """Parallel text as (source, target) pairs of lines, in order, read from its files whenever they are used.

    A pair of which a side is blank is left out. The memory does not grow with the text but by half a byte for each
    pair, and by 8 for each that is left out, see `TextFile`. What cannot be read by offset is loaded into memory: a
    pipe, standard input and what gzip has written.

    Args:
        paths: the file of the sources and that of the targets, or a table, whose first two columns, with a tab
            between them, are source and target. ``"-"`` is standard input.

    Attributes:
        left_out: the number of pairs that are left out.

    Raises:
        DataError: a file is missing, damaged, or not UTF-8, the line counts differ, both paths name one file, a row
            has one column, or no pair has text on both sides; later, on any use: a file has changed.
    """

    def __init__(self, *paths: Path) -> None:
        if not 1 <= len(paths) <= 2:
            raise TypeError(f"parallel text has two files, or one that is a table, not {len(paths)}")
        names = [_name(path) for path in paths]
        if len(paths) == 2 and _same(*paths):
            raise DataError(f"source and target are the same file: {names[0]}")
        self._sides = [_lines_of(path) for path in paths]
        for name, lines in zip(names, self._sides, strict=True):
            if not any(line.strip() for line in lines):
                raise DataError(f"{name} is empty: it has no line with text")
        counts = [len(lines) for lines in self._sides]
        if counts[0] != counts[-1]:
            raise DataError(f"{names[0]} has {counts[0]:,} lines, {names[1]} has {counts[1]:,}; "
                            "parallel files need the same number")
        # The number of pairs before each line that is left out: pair i is so many lines below line i as are <= i.
        self._pairs_before = array("q")
        for number, lines in enumerate(zip(*self._sides, strict=True)):
            if not _has_text(_pair(lines)):
                if len(lines) == 1 and lines[0].strip() and "\t" not in lines[0]:
                    raise DataError(f"{names[0]}, line {number + 1:,}: one column, where source and target are two, "
                                    "with a tab between them, or two files")
                self._pairs_before.append(number - len(self._pairs_before))
        self.left_out = len(self._pairs_before)
        if not len(self):
            raise DataError(f"{' and '.join(names)}: no pair has text on both sides")

    def __len__(self) -> int:
        return len(self._sides[0]) - len(self._pairs_before)

    def at(self, place: int) -> Pair:
        """A pair of lines."""
        line = place + bisect_right(self._pairs_before, place)
        return _pair(tuple(lines[line] for lines in self._sides))

    def __iter__(self) -> Iterator[Pair]:
        return filter(_has_text, map(_pair, zip(*self._sides, strict=True)))


def read_parallel(*paths: Path) -> list[Pair]:
    """The pairs of ``ParallelText(*paths)``, loaded into memory."""
    return list(ParallelText(*paths))


def hold_out(pairs: Sequence[Pair]) -> tuple[Selected[Pair], Selected[Pair]]:
    """Divide `pairs` into those for training and those for validation: a tenth, but about 1,000 at most.

    The hash of a source decides, so that no source is on both sides, and the same pairs are divided alike every time.

    Raises:
        DataError: all pairs have one source.
    """
    digests = (int.from_bytes(blake2b(source.encode(), digest_size=8).digest()) for source, _ in pairs)
    hashes = np.fromiter(digests, np.uint64, len(pairs))
    held = hashes <= max(hashes.min(), int(min(0.1, MOST_HELD_OUT / len(pairs)) * 2**64))
    if held.all():
        held = hashes == hashes.min()
    if held.all():
        raise DataError(f"{len(pairs):,} pairs of one source: none can be held out for validation; give --valid files")
    return Selected(pairs, np.flatnonzero(~held)), Selected(pairs, np.flatnonzero(held))


def first_of_each(pairs: Iterable[Pair]) -> list[Pair]:
    """The first pair of each source."""
    first: dict[str, str] = {}
    for source, target in pairs:
        first.setdefault(source, target)
    return [*first.items()]


def _pair(lines: tuple[str, ...]) -> Pair:
    """The pair of two lines, or of the columns of one."""
    source, target, *_ = lines if len(lines) == 2 else f"{lines[0]}\t".split("\t", 2)
    return source, target


def _has_text(pair: Pair) -> bool:
    """True if neither side is blank."""
    return bool(pair[0].strip() and pair[1].strip())


def _lines_of(path: Path) -> Sequence[str]:
    """The lines of a file, read when they are used if it can be read by offset; DataError as `read_lines`."""
    return TextFile(path) if hasattr(os, "pread") and _is_plain(os.fspath(path)) else read_lines(path)


def _is_plain(path: str) -> bool:
    """True for a regular file that is not compressed."""
    try:
        if path == "-" or not os.path.isfile(path):  # to open a pipe would take it from who reads it next
            return False
        with open(path, "rb") as file:
            return file.read(len(GZIP)) != GZIP
    except OSError:
        return False


def _same(source: Path, target: Path) -> bool:
    """True if both paths lead to one file, or are standard input."""
    exist = os.path.exists(source) and os.path.exists(target)
    return os.fspath(source) == os.fspath(target) or (exist and os.path.samefile(source, target))


def _name(path: Path) -> str:
    """What messages call a file."""
    return "standard input" if os.fspath(path) == "-" else str(path)


def _not_utf8(path: Path, line: int, error: UnicodeDecodeError) -> NoReturn:
    raise DataError(f"{_name(path)}, line {line:,}: not valid UTF-8 (byte {error.object[error.start]:#04x}); "
                    "convert it by iconv, from latin1 for instance") from error
