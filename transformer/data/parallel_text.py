"""Parallel text: two files, line i of one the translation of line i of the other, or a table of two columns."""

import codecs
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress
from os import PathLike
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Path = str | PathLike[str]
Pair = tuple[str, str]

GZIP = b"\x1f\x8b"  # the first bytes of a file that gzip has written
MOST_HELD_OUT = 1000  # pairs, about: more would make each validation slower, and its loss hardly more exact


class DataError(ValueError):
    """A data file is missing or malformed. The message is one line for the user: file, line and problem."""


class Pairs(Protocol):
    """(source, target) texts: a list, for instance, or a `ParallelText`, which each loop reads anew."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Pair]: ...


def lines_of(path: Path) -> Iterator[str]:
    """Read the lines of a UTF-8 file, plain or written by gzip, without their line endings; ``"-"`` is standard input.

    A line ends with a line feed or with carriage return and line feed, and with nothing else: form feeds,
    vertical tabs and U+2028, at which ``str.splitlines`` would split, stay inside a sentence, so that lines of
    two files stay paired. A byte order mark at the start is dropped, and the last line needs no ending.

    Raises:
        DataError: the file cannot be read, is damaged, or is not UTF-8 (the message has the line).
        TypeError: `path` is no path.
    """
    path, name = os.fspath(path), _name(path)  # TypeError for a number, which would name an open file
    try:
        if path != "-" and stat.S_ISCHR(os.stat(path).st_mode):
            raise DataError(f"{path} is a device, not a file of text")  # /dev/zero has no end
        with io.BufferedReader(io.BytesIO(sys.stdin.buffer.read())) if path == "-" else open(path, "rb") as file:
            rows = gzip.GzipFile(fileobj=file) if file.peek(2).startswith(GZIP) else file
            for number, row in enumerate(rows, start=1):
                if number > 1 or row != codecs.BOM_UTF8:
                    yield line_of(row, number, name)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{name} is damaged: gzip cannot read it to its end ({error})") from error
    except OSError as error:
        raise DataError(f"cannot read {name}: {error.strerror}") from error


def line_of(row: bytes, number: int, name: str) -> str:
    """The text of a line in UTF-8, without its ending and, of line 1, without a byte order mark.

    Raises:
        DataError: it is not UTF-8; the message has the name of the file, and the number of the line.
    """
    try:
        return row.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}, line {number:,}: not valid UTF-8 (byte {error.object[error.start]:#04x}); convert it "
                        "by iconv, from latin1 for instance") from error


class ParallelText:
    """Parallel text as (source, target) pairs of lines, in order, read from its files by each loop over it.

    A pair of which a side is blank is left out. The files must stay as they are. Pipes and standard input, which can
    be read once, are loaded into memory.

    Args:
        source: the file of the sources. Without `target` it is a table, whose first two columns, with a tab between
            them, are source and target. ``"-"`` is standard input.
        target: the file of the targets.

    Attributes:
        left_out: the number of pairs that are left out.

    Raises:
        DataError: a file is missing, damaged, or not UTF-8, the line counts differ, both paths name one file, a row
            has one column, or no pair has text on both sides.
    """

    def __init__(self, source: Path, target: Path | None = None) -> None:
        paths = [source] if target is None else [source, target]
        names = [_name(path) for path in paths]
        if len(paths) == 2 and (len({*names}) == 1 or (all(map(os.path.exists, paths)) and os.path.samefile(*paths))):
            raise DataError(f"source and target are the same file: {names[0]}")
        self._sides = [path if os.path.isfile(path) else [*lines_of(path)] for path in paths]
        counts = [sum(1 for _ in side) for side in self._read()]
        if counts[0] != counts[-1]:
            raise DataError(f"{names[0]} has {counts[0]:,} lines, {names[1]} has {counts[1]:,}; parallel files need "
                            "the same number")
        self._count = 0
        for number, lines in enumerate(zip(*self._read(), strict=True), start=1):
            if _pair(lines):
                self._count += 1
            elif len(lines) == 1 and lines[0].strip() and "\t" not in lines[0]:
                raise DataError(f"{names[0]}, line {number:,}: no tab between a source and a target; give a table, "
                                "or two files")
        self.left_out = counts[0] - self._count
        if not self._count:
            raise DataError(f"{' and '.join(names)}: no pair has text on both sides")

    def _read(self) -> list[Iterable[str]]:
        return [side if isinstance(side, list) else lines_of(side) for side in self._sides]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Pair]:
        return filter(None, map(_pair, zip(*self._read(), strict=True)))


@dataclass(eq=False)
class Chosen:
    """Those of some `pairs` where `mask`, boolean (N,), is True."""

    pairs: Pairs
    mask: NDArray[np.bool_]

    def __len__(self) -> int:
        return int(self.mask.sum())

    def __iter__(self) -> Iterator[Pair]:
        return compress(self.pairs, self.mask)


def read_parallel(*paths: Path) -> list[Pair]:
    """The pairs of ``ParallelText(*paths)``, loaded into memory."""
    return list(ParallelText(*paths))


def hold_out(pairs: Pairs) -> tuple[Chosen, Chosen]:
    """Divide `pairs` into those for training and those for validation: a tenth, but about 1,000 at most.

    The hash of a source decides, so that no source is on both sides, and the same pairs are divided alike every time.

    Raises:
        DataError: all pairs have one source.
    """
    hashes = np.fromiter((hash_of(source) for source, _ in pairs), np.uint64, len(pairs))
    held = hashes <= max(hashes.min(), int(min(0.1, MOST_HELD_OUT / len(pairs)) * 2**64))
    if held.all():
        held = hashes == hashes.min()
    if held.all():
        raise DataError("all pairs have one source: none can be held out for validation; give --valid files")
    return Chosen(pairs, ~held), Chosen(pairs, held)


def hash_of(text: str) -> int:
    """64 bits that are the same in every process and on every machine, which Python's own ``hash`` is not."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def first_of_each(pairs: Iterable[Pair]) -> list[Pair]:
    """The first pair of each source."""
    first: dict[str, str] = {}
    for source, target in pairs:
        first.setdefault(source, target)
    return [*first.items()]


def _pair(lines: tuple[str, ...]) -> Pair | None:
    """The pair of two lines, or of the columns of one; None if a side is blank."""
    source, target, *_ = lines if len(lines) == 2 else f"{lines[0]}\t".split("\t", 2)
    return (source, target) if source.strip() and target.strip() else None


def _name(path: Path) -> str:
    """What messages call a file."""
    return "standard input" if os.fspath(path) == "-" else str(path)
