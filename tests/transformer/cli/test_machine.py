"""``--device`` and ``--threads``: where and how a command computes, and what of it a run keeps."""

import json
import sys

import pytest
from threadpoolctl import threadpool_info

from minigrad import parallel
from minigrad.device import devices

from tests.transformer.commands import SMALL, call, refused
from transformer.training.checkpoints import load_run
from transformer.training.threads import SETTINGS
from transformer.translator import Translator

LARGE = ["--task", "copy", "--train-count", 60, "--valid-count", 5, "--d-model", 256, "--batch-tokens", 600]


@pytest.fixture(autouse=True)
def three_cores(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("transformer.training.threads.usable_threads", lambda processes=1: 3)


def test_how_many_for_a_large_model(begun, tmp_path, stand_in):
    for given in ([], ["--device", "cuda"]):
        call("train", *LARGE, "--out", tmp_path, *given)
    assert [run.options.threads for run in begun] == [2, None]


def test_a_run_says_and_keeps_its_number(tmp_path):
    """Whatever the machine; what is given to --resume stands."""
    out = tmp_path / "run"
    for step, (given, number) in enumerate([([], "1 thread"), (["--threads", 2], "2 threads"), ([], "2 threads")], 1):
        new = SMALL if step == 1 else ["--resume", "--quiet"]
        result = call("train", *new, "--steps", step, "--out", out, *given)
        assert result.stdout.splitlines()[1] == number
        assert load_run(out, "latest")[0].options.threads == int(number[0])


def test_threads_while_it_decodes(small_run, monkeypatch):
    """Each thread decodes a part of a batch, and computes its products alone."""
    seen, translate = [], Translator.translate
    monkeypatch.setattr(Translator, "translate", lambda *arguments, **keywords: (
        seen.append(({pool["num_threads"] for pool in threadpool_info()}, parallel.thread_count())),
        translate(*arguments, **keywords))[1])
    monkeypatch.setattr("transformer.training.threads.SMALL", 0)
    assert call("translate", small_run, "--threads", 3, standard_input="a\n").exit_code == 0
    assert seen == [({1}, 3)]


def test_without_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(devices, "_cuda_module", None)
    said = refused("train", *SMALL, "--out", tmp_path / "run", "--device", "cuda")
    assert "CuPy is not installed, and cuda devices need it" in said
    assert not (tmp_path / "run").exists()


def test_on_the_stand_in_everything_runs(stand_in, tmp_path):
    """Of threads nothing is said, and none are kept."""
    folder = tmp_path / "run"
    for given in ([*SMALL, "--steps", 1, "--device", "cuda"], ["--resume", "--steps", 2, "--quiet"]):
        result = call("train", "--out", folder, *given)
        assert (result.exit_code, "thread" in result.stdout) == (0, False), result.output
    assert call("translate", folder, "--device", "cuda:1", standard_input="a b\n").stdout.count("\n") == 1
    assert json.loads(call("evaluate", folder, "--count", 2, "--device", "cuda").stdout)["sentences"] == 2
