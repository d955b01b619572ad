"""Every lesson runs as a notebook and as a program, shows its picture, quotes what it prints, and is right."""

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure

import minigrad as mg

from docs.site import lessons as notebooks
from examples.lessons import story

LESSONS = Path(__file__).parents[2] / "examples/lessons"
PATHS = sorted(LESSONS.glob("[0-9][0-9]_*.py"))
# They draw a film, train three nets, make a page, stack 24 layers, train a Transformer four times.
LONG = ("09", "11", "12", "13", "15")
APART = {"06": 1, "14": 1}  # how many of the differences that a lesson prints are not those of rounding


def run_cells(path, names):
    """Run the code; the value of each cell whose last line is an expression, which a notebook shows under it.

    And what is read from the top to the bottom: the prose of each cell, the output of each cell.
    """
    shown, read = [], []
    for kind, _, text in story.cells(path):
        if kind == "code":
            module = ast.parse(text)
            last = module.body[-1]
            if isinstance(last, ast.Expr):
                module.body[-1] = ast.Assign([ast.Name("_", ast.Store())], last.value)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(ast.fix_missing_locations(module), path.name, "exec"), names)
            read.append(printed.getvalue())
            if isinstance(last, ast.Expr):
                shown.append(names["_"])
        elif kind == "markdown":
            read.append(text)
    return shown, read


@dataclass
class Run:
    """What a lesson did: what is read in it, what it left in its names, and the value that each cell showed last."""

    read: list[str]
    names: dict[str, Any]
    shown: list[Any]
    folder: Path


@pytest.fixture(scope="session")
def lesson(tmp_path_factory):
    """``lesson(3)``: lesson 3, having been run in a folder of its own, with few updates where it trains."""
    runs = {}

    def run(number):
        if number not in runs:
            (path,) = LESSONS.glob(f"{number:02d}_*.py")
            folder = tmp_path_factory.mktemp(path.stem)
            names = {"__name__": "__main__"}
            with pytest.MonkeyPatch.context() as patch, matplotlib.rc_context(), mg.random.fork(0):
                patch.chdir(folder)
                patch.setenv("LESSON_UPDATES", "3")
                shown, read = run_cells(path, names)
            runs[number] = Run(read, names, shown, folder)
        return runs[number]

    return run


@pytest.mark.parametrize("path", [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.name.startswith(LONG) else []) for path in PATHS])
def test_it_runs_and_shows_its_picture_and_quotes_what_it_prints(path, lesson):
    run = lesson(int(path.name[:2]))
    pictures = [file for file in run.folder.glob("runs/lessons/*") if file.stem == path.stem]
    assert any(isinstance(value, Figure) or file.suffix == ".gif" for value in run.shown for file in pictures)
    assert [file.name for file in run.folder.iterdir()] == ["runs"], "it writes under runs/lessons alone"
    kinds = [kind for kind, _, _ in story.cells(path) if kind != "program"]
    prose, printed = ("\n".join(text for kind, text in zip(kinds, run.read, strict=True) if kind == wanted)
                      for wanted in ("markdown", "code"))
    assert notebooks.unprinted(prose, printed) == []
    differences = [float(number) for line in printed.splitlines() if "differ" in line
                   for number in re.findall(r"\b\d(?:\.\d)?e[-+]\d\d\b", line)]
    assert len([number for number in differences if number > 1e-8]) == APART.get(path.name[:2], 0)
    assert notebooks.answer(notebooks.notebook_of(path))  # which handouts leave out


def test_as_a_program_from_any_folder_it_prints_prose_and_output_in_order(lesson, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(LESSONS.parents[1]), "PYTHONUTF8": "1", "COLUMNS": "72"}
    done = subprocess.run([sys.executable, "-W", "error", PATHS[0]], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, encoding="utf-8", check=False)
    warned = [line for line in done.stderr.splitlines() if not line.startswith("Fontconfig warning")]  # of the drawing
    assert (done.returncode, warned) == (0, [])
    assert (tmp_path / f"runs/lessons/{PATHS[0].stem}.png").exists()
    words, place = " ".join(done.stdout.split()), 0
    kinds = [kind for kind, _, _ in story.cells(PATHS[0]) if kind != "program"]
    for kind, text in zip(kinds, lesson(1).read, strict=True):
        told = story.readable(text, 72) if kind == "markdown" else text.partition("\n")[0]  # the tape below has times
        place = words.index(" ".join(told.split()), place)


# --------------------------------------------------------------------------- as notebooks


def test_a_notebook_has_its_outputs_and_its_picture_and_nothing_of_this_machine():
    notebook = notebooks.execute(PATHS[0])
    assert "story" not in nbformat.writes(notebook)  # that cell is for the terminal
    assert str(LESSONS.parents[1]) not in nbformat.writes(notebook)
    notebooks.check(notebook, PATHS[0].name)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in code)
    handout = notebooks.without_answer(notebook, notebooks.answer(notebook))
    assert handout.cells[-1].source.startswith("## A question")
    for cell in code:
        cell.outputs = [output for output in cell.outputs if output.output_type == "stream"]
    with pytest.raises(notebooks.LessonError, match="no cell shows a picture"):
        notebooks.check(notebook, PATHS[0].name)


def test_japanese_prose_replaces_the_prose_alone_and_has_as_many_cells(tmp_path):
    notebook = notebooks.notebook_of(PATHS[0])
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    (tmp_path / "01.md").write_text("\n\n+++\n\n".join(text.upper() for text in prose), encoding="utf-8")
    woven = notebooks.weave(notebook, tmp_path / "01.md")
    for cell, before in zip(woven.cells, notebook.cells, strict=True):
        assert cell.source == (before.source.upper() if cell.cell_type == "markdown" else before.source)
    (tmp_path / "01.md").write_text("\n+++\n".join(prose[1:]), encoding="utf-8")
    with pytest.raises(notebooks.LessonError, match=rf"01\.md .*{len(prose) - 1} cells of prose, .* {len(prose)}"):
        notebooks.weave(notebook, tmp_path / "01.md")


# --------------------------------------------------------------------------- what they show, worked out anew


# The number of a lesson, and what is true of its names when it has run; `run` is what it did.
FACTS = """
    5   np.abs(dA[~np.tri(4, dtype=bool)]).min() > 0
    5   np.abs(late.grad.numpy()[~np.tri(4, dtype=bool)]).max() > 0.01
    5   np.isnan(naive).all() and not out.detach().numpy().any()
    12  max(checks.values()) < 1e-14
    12  any("c a b e d → c a b e d" in text for text in run.read)
    13  lengths["post", "straight"][0] < 1e-3 * lengths["post", "straight"][-1]
    14  all(abs(each.sum() - 1) < 1e-6 for each in weights.values())
    14  abs(ignored - (weights[next(iter(weights))] * losses).sum()) < 1e-6
    16  abs(measured / gradients[WEIGHT][0, 0] - 1) < 1e-6
    16  len(quoted) > 0 and all(line in functions["multi_head_attention_backward"] for line in quoted)
"""


@pytest.mark.parametrize(("number", "fact"), [
    pytest.param(int(number), fact, marks=[pytest.mark.slow] if number in LONG else [])
    for number, fact in (line.split(maxsplit=1) for line in FACTS.strip().splitlines())])
def test_what_they_show_is_true(number, fact, lesson):
    """A mask after the softmax lets the future in; nothing stands on the residual path of pre-norm; …"""
    run = lesson(number)
    quoted = [line for text in run.read for line in re.findall(r"`(\w+ = [^`]+)`", text)]
    assert eval(fact, {**run.names, "np": np, "run": run, "quoted": quoted})  # noqa: S307 - of our own writing


def test_16_the_backward_goes_the_way_of_the_forward_back(lesson):
    forward, backward = lesson(16).names["ways"]
    place = {name: i for i, name in enumerate(reversed(forward))}
    ordered = [name for name in backward if not re.search(r"\.(query|key|value)$", name)]  # these are free
    assert ordered == sorted(ordered, key=place.get)
