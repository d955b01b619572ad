"""Every example runs, shortened."""

import re
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from transformer.training import recipes
from transformer.training.checkpoints import load_run

EXAMPLES = Path(__file__).parents[2] / "examples"
SHARED = EXAMPLES.parents[1] / "shared" / "data" / "small_parallel_enja"


@pytest.fixture(autouse=True)
def little_data(monkeypatch):
    """The recipes with few pairs."""
    for name, recipe in recipes.RECIPES.items():
        few = replace(recipe, train_count=300, valid_count=5)
        monkeypatch.setitem(recipes.RECIPES, name, few)


def run_example(name, *arguments):
    command = runpy.run_path(str(EXAMPLES / name))["main"]
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_every_example_is_here():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == [
        "loss_curvature.py", "train_copy.py", "train_reverse.py", "translate_dates.py", "translate_text.py"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_is_short_and_has_help(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60
    result = run_example(path.name, "--help")
    assert result.exit_code == 0
    for option in ("--device", "--iterations" if path.stem == "loss_curvature" else "--steps", "--out"):
        assert option in result.stdout


def test_copy(tmp_path):
    result = run_example("train_copy.py", "--steps", 2, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "of 1,000 unseen strings" in result.stdout
    assert "j i h g f e d c b a → " in result.stdout
    assert load_run(tmp_path / "run", "latest")[0].progress["step"] == 2
    again = run_example("train_copy.py", "--steps", 2, "--out", tmp_path / "run")  # a run that is finished goes on
    assert (again.exit_code, again.stdout) == (0, result.stdout)


def test_curvature(tmp_path):
    run_example("train_copy.py", "--steps", 30, "--out", tmp_path / "run")
    result = run_example("loss_curvature.py", "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    found = [float(line.split()[-1]) for line in result.stdout.splitlines() if line.startswith("iteration")]
    checked = float(re.search(r"the eigenvalue is (\S+)", result.stdout).group(1))
    assert found[-1] == pytest.approx(checked, rel=1e-5)
    assert found[-1] > found[0]


def test_reverse(tmp_path):
    result = run_example("train_reverse.py", "--steps", 1, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "of 1,000 unseen strings" in result.stdout
    scores = [float(line.split()[0]) for line in result.stdout.splitlines()[-3:]]
    assert scores == sorted(scores, reverse=True)


def test_dates(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.explore.checks.DIRECTIONS", 1)  # of an untrained model, which writes on and on
    result = run_example("translate_dates.py", "--steps", 1, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "of 1,000 unseen dates are right" in result.stdout
    assert result.stdout.count(" → ") == 10
    for name in ("attention.png", "history.png"):
        assert f"{tmp_path}/{name}" in result.stdout
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"
    assert f"{tmp_path}/explain.html" in result.stdout
    assert "le 1er septembre 2021" in (tmp_path / "explain.html").read_text(encoding="utf-8")


def test_text(tmp_path):
    if not SHARED.is_dir():
        pytest.skip("the English-Japanese text is not beside the checkout")
    files = []
    for name, count in (("train.en", 40), ("train.ja", 40), ("dev.en", 6), ("dev.ja", 6)):
        lines = (SHARED / name).read_text(encoding="utf-8").splitlines()[:count]
        files.append(tmp_path / name)
        files[-1].write_text("\n".join(lines), encoding="utf-8")
    result = run_example("translate_text.py", *files, "--steps", 1, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "on 6 sentences (nrefs:1|" in result.stdout
    assert result.stdout.count("  reference  ") == 5


def test_text_that_is_missing_is_one_line(tmp_path):
    result = run_example("translate_text.py", *"abcd", "--out", tmp_path)
    assert (result.exit_code, result.stderr) == (2, "Error: cannot read a: No such file or directory\n")


def test_without_a_gpu_an_example_says_so(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr("minigrad.device.devices._cuda_module", None)
    result = run_example("train_copy.py", "--device", "cuda", "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: CuPy is not installed, and cuda devices need it")
    assert result.stderr.count("\n") == 1
