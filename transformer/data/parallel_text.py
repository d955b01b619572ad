"""Parallel text: two files, one sentence a line, line i of one the translation of line i of the other."""

import codecs
import os
import stat
from os import PathLike

Path = str | PathLike[str]


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
            raise DataError(
                f"{path}, line {number}: not valid UTF-8 (byte {row[error.start]:#04x}); convert the file"
            ) from error
    return lines


def read_parallel(source_path: Path, target_path: Path) -> list[tuple[str, str]]:
    """Read two parallel files, `source_path` and `target_path` (see ``read_lines``), as pairs of lines, in order.

    A line that is blank in both files is skipped.

    Raises:
        DataError: a file is missing, empty or not UTF-8, their line counts differ, or a line is blank in one
            only.
    """
    sources, targets = read_lines(source_path), read_lines(target_path)
    for path, lines in ((source_path, sources), (target_path, targets)):
        if not any(line.strip() for line in lines):
            raise DataError(f"{path} is empty: it has no line with text")
    if len(sources) != len(targets):
        raise DataError(
            f"{source_path} has {len(sources):,} lines, {target_path} has {len(targets):,}; "
            "parallel files need the same number"
        )
    pairs = [(source, target) for source, target in zip(sources, targets, strict=True)]
    for path, side in ((source_path, 0), (target_path, 1)):
        blank = [i + 1 for i, pair in enumerate(pairs) if not pair[side].strip() and pair[1 - side].strip()]
        if blank:
            raise DataError(f"{path} is blank at {_line_numbers(blank)}, where the other file has text")
    return [pair for pair in pairs if pair[0].strip()]


def line_of_pair(path: Path, index: int) -> int:
    """The line, counted from 1, of the pair ``index``, counted from 0, that ``read_parallel`` read from ``path``."""
    return [number for number, line in enumerate(read_lines(path), start=1) if line.strip()][index]


def _line_numbers(numbers: list[int], shown: int = 5) -> str:
    words = ("line " if len(numbers) == 1 else "lines ") + ", ".join(map(str, numbers[:shown]))
    return words if len(numbers) <= shown else f"{words} and {len(numbers) - shown:,} more"
