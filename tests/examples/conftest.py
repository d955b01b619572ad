"""Running a lesson: its cells in order, as a notebook does, each once a session."""

import ast
import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import pytest

import minigrad as mg

LESSONS = Path(__file__).parents[2] / "examples/lessons"


@dataclass
class Cell:
    """A cell of a script in percent format."""

    kind: str  # "markdown" or "code"
    text: str
    line: int  # of its first line in the file


@dataclass
class Run:
    """What a lesson did: what it printed, what it left in its names, and the value that each cell showed last."""

    printed: str
    names: dict[str, Any]
    shown: list[Any]
    folder: Path

    def numbers(self, label: str) -> list[float]:
        """The numbers on the first printed line that starts with `label`, after it."""
        line = next(line for line in self.printed.splitlines() if line.strip().startswith(label))
        return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?", line.strip()[len(label):])]


def cells(path: Path) -> list[Cell]:
    """The cells of a script in percent format; the prose of markdown without its comment signs."""
    found: list[Cell] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("# %%"):
            assert line in ("# %%", "# %% [markdown]"), f"{path.name}:{number}: {line}"
            found.append(Cell("markdown" if "markdown" in line else "code", "", number + 1))
            continue
        assert found, f"{path.name}:{number}: text before the first cell"
        if found[-1].kind == "markdown":
            assert not line or line == "#" or line.startswith("# "), f"{path.name}:{number}: prose is a comment"
            line = line[2:]
        found[-1].text += line + "\n"
    return found


def run_cells(path: Path, names: dict[str, Any]) -> list[Any]:
    """Run the code, showing nothing; the value of each cell whose last line is an expression."""
    shown = []
    for cell in cells(path):
        if cell.kind == "markdown":
            continue
        tree = ast.parse(cell.text, filename=path.name)
        ast.increment_lineno(tree, cell.line - 1)
        last = tree.body[-1]
        if isinstance(last, ast.Expr):  # what a notebook shows under the cell
            target = ast.copy_location(ast.Name("_", ast.Store()), last)
            tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
        exec(compile(tree, str(path), "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(names["_"])
    return shown


@pytest.fixture(scope="session")
def lesson(tmp_path_factory):
    """``lesson(3)``: lesson 3, having been run in a folder of its own, with few updates where it trains."""
    runs: dict[int, Run] = {}

    def run(number: int) -> Run:
        if number not in runs:
            (path,) = LESSONS.glob(f"{number:02d}_*.py")
            folder = tmp_path_factory.mktemp(path.stem)
            printed, names = io.StringIO(), {"__name__": "__main__"}
            with (pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed), matplotlib.rc_context(),
                  mg.random.fork(0)):
                patch.chdir(folder)
                patch.setenv("LESSON_UPDATES", "3")
                shown = run_cells(path, names)
            runs[number] = Run(printed.getvalue(), names, shown, folder)
        return runs[number]

    return run
