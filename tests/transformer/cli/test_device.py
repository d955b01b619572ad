"""``--device``: without a GPU, and on the stand-in."""

import json
import sys

import pytest

from minigrad.device import devices

from tests.transformer.commands import SMALL, call, refused


@pytest.mark.parametrize("command", ["train", "translate", "evaluate"])
def test_without_a_gpu(command, small_run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(devices, "_cuda_module", None)
    arguments = [*SMALL, "--out", tmp_path / "run"] if command == "train" else [small_run]
    assert "CuPy is not installed, and cuda devices need it" in refused(command, *arguments, "--device", "cuda")
    assert not (tmp_path / "run").exists()


def test_on_the_stand_in_everything_runs(stand_in, tmp_path):
    """Of threads nothing is said, and none are kept."""
    folder = tmp_path / "run"
    result = call("train", *SMALL, "--steps", 1, "--out", folder, "--device", "cuda")
    assert result.exit_code == 0, result.output
    assert "thread" not in result.stdout
    assert call("translate", folder, "--device", "cuda:1", standard_input="a b\n").stdout.count("\n") == 1
    assert json.loads(call("evaluate", folder, "--count", 2, "--device", "cuda").stdout)["sentences"] == 2
    result = call("train", "--out", folder, "--resume", "--steps", 2, "--quiet")
    assert result.exit_code == 0, result.output
    assert "thread" not in result.stdout
