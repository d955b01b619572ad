"""Which line of the user's program ran an operation."""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_FUNCTIONS = _PACKAGE + "functional" + os.sep  # where compositions are
_SEAM = _FUNCTIONS + "compositions.py"  # stands around every operation within ``fused(False)``, and runs none itself


@dataclass(frozen=True)
class Line:
    """A line of a program; `inner` is the line of minigrad.functional that it led to, if it did."""

    file: str
    number: int
    function: str
    inner: Line | None = None

    def __str__(self) -> str:
        """``train:12›softmax:33``."""
        text = f"{Path(self.file).stem}:{self.number}"
        return text if self.inner is None else f"{text}›{self.inner}"

    def describe(self) -> str:
        """As in a traceback: where it is and, on a second line, its text."""
        text = f'File "{self.file}", line {self.number}, in {self.function}'
        source = linecache.getline(self.file, self.number).strip()
        return f"{text}\n    {source}" if source else text


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
