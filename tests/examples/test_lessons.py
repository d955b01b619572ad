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
from minigrad import Tensor
from minigrad import functional as F

from docs.site import lessons as notebooks
from examples.lessons import story

LESSONS = Path(__file__).parents[2] / "examples/lessons"
PATHS = sorted(LESSONS.glob("[0-9][0-9]_*.py"))
# They draw a film, train three nets, make a page, stack 24 layers, train a Transformer four times.
LONG = ("09", "11", "12", "13", "15")
def run_cells(path: Path, names: dict[str, Any]) -> tuple[list[Any], list[str]]:
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
    runs: dict[int, Run] = {}

    def run(number: int) -> Run:
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


def as_a_program(path, folder, **environment):
    environment = {**os.environ, "PYTHONPATH": str(LESSONS.parents[1]), **environment}
    return subprocess.run([sys.executable, "-W", "error", path], cwd=folder, env=environment, text=True,
                          capture_output=True, encoding="utf-8", check=False)


def test_as_a_program_from_any_folder_it_prints_prose_and_output_in_order(lesson, tmp_path):
    done = as_a_program(PATHS[0], tmp_path, PYTHONUTF8="1", COLUMNS="72")
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
    assert any("c a b e d → c a b e d" in text for text in run.read)
    page = (run.folder / "runs/lessons/12_backprop_through_attention.html").read_text(encoding="utf-8")
    assert "decoder.layers.0.cross_attention" in page
    for name, part in run.names["in_parts"].items():  # a few keys at a time
        np.testing.assert_allclose(part, run.names[name], rtol=0, atol=1e-14)


@pytest.mark.slow
def test_13_the_gradient_of_layer_norm_by_hand(lesson):
    names = lesson(13).names
    x, gamma, beta = (Tensor(names["inputs"][name], requires_grad=True) for name in ("x", "gamma", "beta"))
    (F.layer_norm(x, gamma, beta) * names["G"]).sum().backward()
    for name, tensor in {"x": x, "gamma": gamma, "beta": beta}.items():
        np.testing.assert_allclose(names["hand"][name], tensor.grad.numpy(), rtol=0, atol=1e-12)
        np.testing.assert_allclose(names["tried"](name), tensor.grad.numpy(), rtol=0, atol=1e-7)
    straight = {norm: names["lengths"][norm, "straight"] for norm in ("pre", "post")}
    assert straight["pre"] == pytest.approx(straight["pre"][0], rel=1e-12)  # nothing stands on the residual path
    assert straight["post"][0] < 1e-3 * straight["post"][-1]


def test_14_cross_entropy(lesson):
    names = lesson(14).names
    assert names["dz"] == pytest.approx(names["p"] - names["y"], abs=1e-15)
    assert names["parts"]["sums over the number of all tokens"] == pytest.approx(names["whole"], abs=1e-15)
    tokens, sentences, places = names["weights"].values()
    for weights in (tokens, sentences, places):
        assert weights.sum() == pytest.approx(1)
    assert not tokens[~names["real"]].any()
    assert not sentences[~names["real"]].any()
    assert names["ignored"] == pytest.approx((tokens * names["losses"]).sum())


@pytest.mark.slow
def test_15_three_rules_are_those_of_the_optimisers(lesson):
    apart = lesson(15).names["apart"]
    assert apart["SGD"] == apart["momentum"] == 0
    assert apart["Adam"] < 1e-14  # it takes both corrections out of the arrays, and so rounds elsewhere


def test_16_what_the_prose_quotes_stands_in_the_program(lesson):
    run = lesson(16)
    names = run.names
    quoted = [line for text in run.read for line in re.findall(r"`(\w+ = [^`]+)`", text)]
    assert quoted
    assert all(line in names["functions"]["multi_head_attention_backward"] for line in quoted)
    assert names["apart"] < 1e-13
    assert names["measured"] == pytest.approx(names["gradients"][names["WEIGHT"]][0, 0], rel=1e-6)
    forward, backward = names["ways"]
    place = {name: i for i, name in enumerate(reversed(forward))}
    free = re.compile(r"\.(query|key|value)$")
    assert [name for name in backward if not free.search(name)] == sorted(
        (name for name in backward if not free.search(name)), key=place.get)
    assert {"weights", "weights_2", "weights_3"} < set(names["kept"])
    assert not [name for name in names["kept"] if name.startswith("scores")]
