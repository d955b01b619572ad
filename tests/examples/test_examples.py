"""Every example runs, shortened."""

import math
import re
import runpy
import sys
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
        monkeypatch.setitem(recipes.RECIPES, name, recipe | {"train_count": 300, "valid_count": 5})


def run_example(name, *arguments, status=0):
    command = runpy.run_path(str(EXAMPLES / name))["main"]
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    return result


def test_copy_and_the_curvature_of_its_loss(tmp_path):
    out = tmp_path / "run"
    result = run_example("train_copy.py", "--steps", 10, "--out", out)
    assert "j i h g f e d c b a → " in result.stdout
    assert load_run(out, "latest")[0].progress.step == 10
    result = run_example("loss_curvature.py", "--out", out, "--iterations", 9)
    found = [float(line.split()[-1]) for line in result.stdout.splitlines() if line.startswith("iteration")]
    checked = float(re.search(r"the eigenvalue is (\S+)", result.stdout).group(1))
    assert found[-1] == pytest.approx(checked, rel=1e-5)
    assert found[-1] > found[0]


def test_characters(tmp_path):
    """A text with one letter after another is soon written without a mistake; a seed repeats the run."""
    text = tmp_path / "text.txt"
    text.write_text("abcdefgh" * 100, encoding="utf-8")
    options = (text, "--steps", 30, "--length", 16, "--batch-size", 8, "--prompt", "abc")
    results = [run_example("train_characters.py", *options) for _ in range(2)]
    assert results[0].stdout == results[1].stdout
    assert results[0].stdout.partition("\n\n")[2].startswith("abcdefgh" * 4)
    assert float(re.search(r"validation: (\S+) bits/character", results[0].stdout).group(1)) < 0.1
    result = run_example("train_characters.py", text, "--length", 80, status=2)
    assert result.stderr == "Error: 800 characters are too few for --length 80; take 810\n"


@pytest.mark.slow
def test_a_loop_on_ranks_as_one_process():
    pytest.importorskip("mpi4py", reason="the extra mpi is not installed")
    loss = re.search(r"step 100: loss (\S+)", run_example("train_on_ranks.py", "--steps", 100).stdout).group(1)
    assert float(loss) < math.log(11) / 2  # ten letters and the end, by chance


@pytest.mark.slow
def test_reverse(tmp_path):
    result = run_example("train_reverse.py", "--steps", 1, "--out", tmp_path)
    scores = [float(line.split()[0]) for line in result.stdout.splitlines()[-3:]]
    assert scores == sorted(scores, reverse=True)


def test_digits():
    """Three passes read more than half of the images; by chance it would be a tenth."""
    pytest.importorskip("sklearn", reason="the images are in scikit-learn, of the data extra")
    result = run_example("digits.py", "--epochs", 3)
    right = float(re.search(r"mistake: (\S+)% of 360 unseen images", result.stdout).group(1))
    assert right > 50


def test_text(tmp_path):
    if not SHARED.is_dir():
        pytest.skip("the English-Japanese text is not beside the checkout")
    files = []
    for name, count in (("train.en", 40), ("train.ja", 40), ("dev.en", 6), ("dev.ja", 6)):
        lines = (SHARED / name).read_text(encoding="utf-8").splitlines()[:count]
        files.append(tmp_path / name)
        files[-1].write_text("\n".join(lines), encoding="utf-8")
    result = run_example("translate_text.py", *files, "--minutes", 0.01, "--out", tmp_path / "run")
    assert "on 6 sentences (nrefs:1|" in result.stdout
    assert result.stdout.count("  reference  ") == 5


def test_a_users_mistake_is_one_line(tmp_path, monkeypatch):
    result = run_example("translate_text.py", *"abcd", "--out", tmp_path, status=2)
    assert result.stderr == "Error: cannot read a: No such file or directory\n"
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr("minigrad.device.devices._cuda_module", None)
    result = run_example("train_copy.py", "--device", "cuda", "--out", tmp_path / "run", status=2)
    assert result.stderr.startswith("Error: CuPy is not installed")
    assert result.stderr.count("\n") == 1
