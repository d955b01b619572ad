"""Runs the cells of one page, in the page's Python: what they print, the last value, figures, and errors as a notebook.

``Cells(send).run(source, number)``. What comes of a cell goes to ``send(kind, content, width)``:

    "out", "err"   text, as it is printed
    "value"        text: the representation of the last expression's value
    "html"         text: its representation as HTML or SVG
    "image"        the bytes of a PNG or GIF to be shown `width` pixels wide
    "error"        text: the traceback, from the cell's own line on
    "missing"      text: the name of the module that an import did not find
"""

import ast
import contextlib
import io
import linecache
import logging
import os
import sys
import time
import traceback
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIMIT = 200_000  # characters that one cell may print
EVERY = 0.05  # seconds for which text is gathered
SHARPNESS = 2  # pixels of a picture for one of the page

Send = Callable[[str, Any, int], None]

os.environ["MPLBACKEND"] = "agg"  # there is no window, and matplotlib should look for none
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it would tell that it lists the fonts, each time


class Printed(io.TextIOBase):
    """A stream that sends text: a few lines at once, and not without end."""

    def __init__(self, kind: str, send: Send) -> None:
        self.kind, self.send = kind, send
        self.gathered, self.left, self.sent = "", LIMIT, time.monotonic()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.left > 0:
            self.gathered += text[:self.left]
            self.left -= len(text)
            if self.left <= 0:
                self.gathered += f"\n… more than {LIMIT:,} characters: the rest is left out\n"
        if time.monotonic() - self.sent > EVERY:
            self.flush()
        return len(text)

    def flush(self) -> None:
        if self.gathered:
            self.send(self.kind, self.gathered, 0)
        self.gathered, self.sent = "", time.monotonic()


def films() -> set[tuple[Path, int]]:
    """The films that there are, where the lessons write them, and when each was written."""
    return {(path, path.stat().st_mtime_ns) for path in Path("runs/lessons").glob("*.gif")}


class Cells:
    """The names that the cells share, and the running of one cell after another."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.module = types.ModuleType("__main__")
        sys.modules["__main__"] = self.module

    def run(self, source: str, number: int) -> bool:
        """Run a cell, and send what comes of it; whether it ended without an error."""
        file = f"<cell {number}>"
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        out, err, before = Printed("out", self.send), Printed("err", self.send), films()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            try:
                value = self._value(source, file)
                out.flush()
                err.flush()
                self.show(value)
                self._show_figures(but=value)
                for film, _ in sorted(films() - before):
                    gif = film.read_bytes()
                    self.send("image", gif, int.from_bytes(gif[6:8], "little"))
            except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt end the cell, not the page
                out.flush()
                err.flush()
                self._tell(error, file)
                return False
        out.flush()
        err.flush()
        return True

    def _value(self, source: str, file: str) -> Any:
        tree, last = ast.parse(source, file), None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
        exec(compile(tree, file, "exec"), self.module.__dict__)
        return None if last is None else eval(compile(last, file, "eval"), self.module.__dict__)  # noqa: S307

    def show(self, value: Any) -> None:
        """Send a value as a notebook shows it: a figure as a picture, and None not at all."""
        if value is None:
            return
        if "matplotlib" in sys.modules:
            from matplotlib.figure import Figure

            if isinstance(value, Figure):
                picture = io.BytesIO()
                value.savefig(picture, format="png", dpi=SHARPNESS * value.dpi, bbox_inches="tight")
                png = picture.getvalue()
                self.send("image", png, int.from_bytes(png[16:20]) // SHARPNESS)  # its header has the width there
                return
        for name in ("_repr_html_", "_repr_svg_"):
            if hasattr(value, name):
                self.send("html", getattr(value, name)(), 0)
                return
        self.module.__dict__["_"] = value
        self.send("value", repr(value), 0)

    def _show_figures(self, but: Any) -> None:
        """Those that the cell left open in pyplot; they are closed then."""
        if "matplotlib.pyplot" in sys.modules:
            from matplotlib import pyplot

            for figure in map(pyplot.figure, pyplot.get_fignums()):
                self.show(None if figure is but else figure)
            pyplot.close("all")

    def _tell(self, error: BaseException, file: str) -> None:
        """Send a traceback that begins in the cell, without the lines that run it."""
        told = traceback.TracebackException.from_exception(error)
        inside = [place for place, frame in enumerate(told.stack) if frame.filename == file]
        told.stack = traceback.StackSummary.from_list(told.stack[inside[0]:] if inside else [])
        self.send("error", "".join(told.format()), 0)
        if isinstance(error, ModuleNotFoundError) and error.name:
            self.send("missing", error.name.partition(".")[0], 0)
