"""Which line of the user's program ran an operation."""

from __future__ import annotations

import linecache
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from minigrad.inspect.table import text_width

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_FUNCTIONS = (_PACKAGE + "functional" + os.sep, _PACKAGE + "nn" + os.sep)  # where compositions and layers are
_SEAM = _FUNCTIONS[0] + "compositions.py"  # stands around every operation within ``fused(False)``, and runs none itself


@dataclass(frozen=True)
class Line:
    """A line of a program; `inner` is the line of minigrad.functional or minigrad.nn that it led to, if it did."""

    file: str
    number: int
    function: str
    inner: Line | None = None

    @property
    def source(self) -> str:
        """Its text, blank if the source is not to be had."""
        return linecache.getline(self.file, self.number).strip()

    @property
    def shown(self) -> list[Line]:
        """The lines that a table shows: itself and, if that is in minigrad.functional, the inner one."""
        return [self] if self.inner is None or not self.inner.file.startswith(_FUNCTIONS[0]) else [self, self.inner]

    def text(self, names: Mapping[str, str]) -> str:
        """``train:12›softmax:33``, with these names of the files."""
        return "›".join(f"{names[line.file]}:{line.number}" for line in self.shown)

    def __str__(self) -> str:
        return self.text(short_names(self.shown))

    def describe(self) -> str:
        """As in a traceback: where it is and, on a second line, its text."""
        text = f'File "{self.file}", line {self.number}, in {self.function}'
        return f"{text}\n    {self.source}" if self.source else text


def short_names(lines: Iterable[Line]) -> dict[str, str]:
    """What a table calls the files of `lines`: by their names, with as many folders as tell equal ones apart."""
    whole = {line.file: Path(line.file).with_suffix("").parts for line in lines}
    counts = dict.fromkeys(whole, 1)
    while True:
        names = {file: "/".join(parts[-counts[file]:]) for file, parts in whole.items()}
        taken = Counter(names.values())
        alike = [file for file, name in names.items() if taken[name] > 1 and counts[file] < len(whole[file])]
        if not alike:
            return names
        for file in alike:
            counts[file] += 1


def shorten_lines(text: str, width: int) -> str:
    """A text of lines, cut to `width` cells if it is longer, in the names of its files alone: the numbers stay."""
    parts = [part.rpartition(":") for part in text.split("›")]
    names, numbers = [name for name, _, _ in parts], [number for _, _, number in parts]
    room = width - sum(len(number) + 2 for number in numbers) + 1
    while sum(map(text_width, names)) > room and any(len(name) > 1 for name in names):
        longest = max(range(len(names)), key=lambda i: text_width(names[i]))
        names[longest] = names[longest].removesuffix("…")[:-1] + "…"
    return "›".join(f"{name}:{number}" for name, number in zip(names, numbers, strict=True))


def current_line() -> Line | None:
    """The innermost line outside the minigrad package that led here; None if there is none."""
    frame, inner = sys._getframe(1), None
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE):
            return Line(file, frame.f_lineno, frame.f_code.co_name, inner)
        if inner is None and file.startswith(_FUNCTIONS) and file != _SEAM:
            inner = Line(file, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None
