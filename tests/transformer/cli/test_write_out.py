"""The command ``write-out``: the program runs with NumPy alone and has the engine's loss and gradients."""

import subprocess
import sys

import numpy as np
import pytest

import minigrad as mg

from tests.transformer.commands import call, refused
from transformer.explore.translation import explain
from transformer.model import Transformer
from transformer.translator import Translator

ALONE = """\
import runpy, sys
sys.modules.update(dict.fromkeys(("minigrad", "transformer", "cupy")))  # which would fail to import
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.mark.parametrize("target", ["二 一", None], ids=["wrong", "own"])
def test_the_program_has_the_loss_and_the_gradients(run, target, tmp_path):
    path = tmp_path / "step.py"
    result = call("write-out", run, "three one", *([target] if target else []), "--out", path)
    assert result.exit_code == 0, result.output
    assert {file.name for file in tmp_path.iterdir()} == {"step.py", "step.npz"}
    expected = explain(Translator.load(run), "three one", target)
    norms = {name: np.linalg.norm(p.grad.numpy()) for name, p in expected.trace.model.named_parameters()}
    done = subprocess.run([sys.executable, "-I", "-W", "error", "-c", ALONE, path], text=True, encoding="utf-8",
                          capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, last = (line.split() for line in done.stdout.splitlines())
    assert float(last[-1]) == pytest.approx(expected.loss, rel=1e-11)
    found = {line[0]: float(line[-1]) for line in lines}
    assert found == pytest.approx(norms, rel=1e-5, abs=1e-12 * max(norms.values()))


def test_it_replaces_what_it_wrote_and_nothing_else(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "step.py"
    for source in ("one", "two"):
        assert call("write-out", run, source).exit_code == 0
        assert f"'{source}'" in program.read_text(encoding="utf-8").splitlines()[0]
    for change in (lambda: program.write_text("mine"), program.unlink):  # and then there are another program's arrays
        change()
        assert "is there already" in refused("write-out", run, "one")


def test_a_loss_that_is_not_finite_is_no_program(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Transformer, "loss", lambda model, source, labels: mg.Tensor(np.inf))
    assert "loss" in refused("write-out", run, "one", "二")
    assert list(tmp_path.iterdir()) == []
