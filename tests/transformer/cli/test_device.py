"""``--device``: without a GPU, and on the stand-in."""

import json
import sys
import types

import pytest

from minigrad.device import devices

from tests.transformer.commands import SMALL, call, refused


def broken_cupy(error):
    """A module like a CuPy that can be imported, where the first question to the driver ends in `error`."""

    class RuntimeProblem(RuntimeError):
        pass

    def count():
        if error is None:
            return 0
        raise error

    module = types.ModuleType("cupy")
    runtime = types.SimpleNamespace(CUDARuntimeError=RuntimeProblem, getDeviceCount=count)
    compiler = types.SimpleNamespace(CompileException=RuntimeProblem)
    module.cuda = types.SimpleNamespace(runtime=runtime, compiler=compiler)
    return module


@pytest.mark.parametrize(("command", "cupy", "message"), [
    ("train", None, "CuPy is not installed, and cuda devices need it"),
    ("translate", broken_cupy(None), "no usable GPU"),
    ("evaluate", broken_cupy(OSError("libcublas.so.12: not found")), "libcublas.so.12"),
], ids=["no CuPy", "no GPU", "no library"])
def test_without_a_gpu(monkeypatch, run, tmp_path, command, cupy, message):
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(devices, "_cuda_module", None)
    arguments = [*SMALL, "--out", tmp_path / "run"] if command == "train" else [run]
    assert message in refused(command, *arguments, "--device", "cuda")
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
