"""Which line of the user's program ran an operation."""

from __future__ import annotations

import linecache
import os
import sys
from pathlib import Path
from typing import NamedTuple

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_FUNCTIONS = (_PACKAGE + "functional" + os.sep, _PACKAGE + "nn" + os.sep)  # where compositions and layers are


class Line(NamedTuple):
    """A line of a program; `inner` is the line of minigrad.functional or minigrad.nn that it led to, if it did."""

    file: str
    number: int
    function: str
    inner: Line | None = None

    @property
    def source(self) -> str:
        """Its text, blank if the source is not to be had."""
        return linecache.getline(self.file, self.number).strip()

    def __str__(self) -> str:
        inner = f"›{self.inner}" if self.inner is not None and self.inner.file.startswith(_FUNCTIONS[0]) else ""
        return f"{os.path.basename(self.file).removesuffix('.py')}:{self.number}{inner}"

    def describe(self) -> str:
        """As in a traceback: where it is and, on a second line, its text."""
        text = f'File "{self.file}", line {self.number}, in {self.function}'
        return f"{text}\n    {self.source}" if self.source else text


def current_line() -> Line | None:
    """The innermost line outside the minigrad package that led here; None if there is none."""
    frame, inner = sys._getframe(1), None
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE):
            return Line(file, frame.f_lineno, frame.f_code.co_name, inner)
        if inner is None and file.startswith(_FUNCTIONS):
            inner = Line(file, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None
