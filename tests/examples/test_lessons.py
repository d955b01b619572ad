"""Every lesson runs as a notebook does, shows its picture, its words quote what it prints, and what it shows holds."""

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
import numpy as np
import pytest
from matplotlib.figure import Figure

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F

LESSONS = Path(__file__).parents[2] / "examples/lessons"
PATHS = sorted(LESSONS.glob("[0-9][0-9]_*.py"))
LONG = ("09", "11", "12")  # these lessons take most of the time: they draw a film, train three nets, make a page


def cells(path: Path) -> list[tuple[str, str]]:
    """The cells of a script in percent format: each "markdown" or "code", and its text."""
    start, *parts = re.split(r"(?m)^# %%(.*)$\n?", path.read_text(encoding="utf-8"))
    assert not start, f"{path.name}: text before the first cell"
    assert set(parts[::2]) <= {"", " [markdown]"}, path.name
    for kind, text in zip(parts[::2], parts[1::2], strict=True):
        assert not kind or all(re.match("# |#?$", line) for line in text.splitlines()), f"{path.name}: {text}"
    return [("markdown" if kind else "code", text) for kind, text in zip(parts[::2], parts[1::2], strict=True)]


def run_cells(path: Path, names: dict[str, Any]) -> list[Any]:
    """Run the code; the value of each cell whose last line is an expression, which a notebook shows under it."""
    shown = []
    for kind, text in cells(path):
        if kind == "code":
            module = ast.parse(text)
            last = module.body[-1]
            if isinstance(last, ast.Expr):
                module.body[-1] = ast.Assign([ast.Name("_", ast.Store())], last.value)
            exec(compile(ast.fix_missing_locations(module), path.name, "exec"), names)
            if isinstance(last, ast.Expr):
                shown.append(names["_"])
    return shown


@dataclass
class Run:
    """What a lesson did: what it printed, what it left in its names, and the value that each cell showed last."""

    printed: str
    names: dict[str, Any]
    shown: list[Any]
    folder: Path


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


@pytest.mark.parametrize("path", [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.name.startswith(LONG) else []) for path in PATHS])
def test_it_runs_and_shows_its_picture_and_quotes_what_it_prints(path, lesson):
    run = lesson(int(path.name[:2]))
    pictures = [file for file in run.folder.glob("runs/lessons/*") if file.stem == path.stem]
    assert any(isinstance(value, Figure) or file.suffix == ".gif" for value in run.shown for file in pictures)
    assert [file.name for file in run.folder.iterdir()] == ["runs"], "it writes under runs/lessons alone"
    known = set(re.findall(r"\d+\.\d+", run.printed))
    prose = "\n".join(text for kind, text in cells(path) if kind == "markdown")
    assert set(re.findall(r"(?<![\w.:])\d+\.\d+(?!\w|\.\d|:)", prose)) <= known


def test_every_link_of_the_list_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (LESSONS / "README.md").read_text(encoding="utf-8")):
        assert target.startswith("https://") or (LESSONS / target).exists(), target


def test_as_a_program_from_any_folder(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(LESSONS.parents[1]), "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "-W", "error", PATHS[0]], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, encoding="utf-8", check=True)
    told = [line for line in done.stderr.splitlines() if not line.startswith("Fontconfig warning")]  # of the drawing
    assert told == []
    assert (tmp_path / f"runs/lessons/{PATHS[0].stem}.png").exists()


# --------------------------------------------------------------------------- what they show, worked out anew


def test_3_attention_by_hand(lesson):
    names = lesson(3).names
    x, w_q, w_k, w_v = (Tensor(np.array(names[name], dtype=float), requires_grad=True)
                        for name in ("X", "W_Q", "W_K", "W_V"))
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    for tensor in (q, k, v):
        tensor.retain_grad()
    out = F.scaled_dot_product_attention(q, k, v)
    (((out[3] - np.array([2.0, 0.0])) ** 2).sum() / 2).backward()
    for name, tensor in {"dX": x, "dW_Q": w_q, "dW_K": w_k, "dW_V": w_v, "dQ": q, "dK": k, "dV": v}.items():
        assert names["hand"][name] == pytest.approx(tensor.grad.numpy(), abs=1e-15), name
    for name, gradient in names["learnt"].items():
        assert names["engine"][name] == pytest.approx(gradient, rel=1e-9, abs=1e-15), name
    assert names["Ac"] == pytest.approx(names["A"].T, abs=1e-15)  # in columns it is the transpose
    assert names["xc"].grad.numpy() == pytest.approx(names["learnt"]["dX"].T, abs=1e-14)


def test_5_masks(lesson):
    names, later = lesson(5).names, ~np.tri(4, dtype=bool)
    A, dA, dS = names["A"], names["dA"], names["dS"]
    assert np.abs(dA[later]).min() > 0
    assert not A[later].any()
    assert not dS[later].any()
    assert dS == pytest.approx(A * (dA - (A * dA).sum(axis=1, keepdims=True)), abs=1e-16)
    assert np.abs(names["late"].grad.numpy()[later]).max() > 0.01  # a mask after the softmax lets the future in
    assert np.isnan(names["naive"]).all()  # of a row that may see nothing
    assert not names["out"].detach().numpy().any()


@pytest.mark.slow
def test_12_ten_lines_are_the_gradients_of_the_engine(lesson):
    run = lesson(12)
    assert max(run.names["differences"].values()) < 1e-14
    assert max(run.names["checks"].values()) < 1e-14
    assert "c a b e d → c a b e d" in run.printed
    page = (run.folder / "runs/lessons/12_backprop_through_attention.html").read_text(encoding="utf-8")
    assert "decoder.layers.0.cross_attention" in page
    for name, part in run.names["in_parts"].items():  # a few keys at a time
        np.testing.assert_allclose(part, run.names[name], rtol=0, atol=1e-14)
