"""``--device`` and ``--threads``: where and how a command computes, and what of it a run keeps."""

import json
import sys

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from minigrad import parallel
from minigrad.device import devices

import transformer.cli.train
from tests.transformer import runs
from tests.transformer.commands import SMALL, call, refused
from transformer.training.checkpoints import load_run
from transformer.training.threads import SETTINGS
from transformer.translator import Translator

LARGE = ["--task", "copy", "--train-count", 60, "--valid-count", 5, "--d-model", 256, "--batch-tokens", 600]


@pytest.fixture(autouse=True)
def three_cores(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("transformer.cli.train.usable_threads", lambda: 3)
    monkeypatch.setattr("transformer.training.threads.usable_threads", lambda processes=1: 3)


def products():
    return {pool["num_threads"] for pool in threadpool_info()}


@pytest.mark.parametrize(("model", "arguments", "threads"), [
    (SMALL, [], 1), (SMALL, ["--threads", 2], 2), (LARGE, [], 2), (LARGE, ["--device", "cuda"], None),
], ids=str)
def test_how_many(model, arguments, threads, begun, tmp_path, stand_in):
    call("train", *model, "--out", tmp_path, *arguments)
    [run] = begun
    assert run.options.threads == threads


@pytest.mark.parametrize(("divided", "threads", "seen"), [
    (False, None, (1, {1})), (False, 2, (1, {2})), (True, 2, (2, {1}))])
def test_threads_and_products_while_it_trains(divided, threads, seen, tmp_path, monkeypatch):
    """Of a small model, as `runs.config` is, a batch is not divided, but its products are; None: they neither."""
    found = []
    if divided:
        monkeypatch.setattr("transformer.training.threads.SMALL", 0)
        monkeypatch.setattr("transformer.training.threads.SHARD_TOKENS", 1)
    runs.after_update(monkeypatch, lambda trainer: found.append((parallel.thread_count(), products())))
    with threadpool_limits(2):
        runs.run(tmp_path, steps=1, threads=threads)
        assert products() == {2}
    assert found == [seen]


def test_a_run_says_and_keeps_its_number(tmp_path, monkeypatch):
    """Whatever the machine; what is given to --resume stands."""
    out, used = tmp_path / "run", []
    result = call("train", *SMALL, "--steps", 1, "--out", tmp_path / "plain")
    assert result.stdout.splitlines()[1] == "1 thread: more would gain nothing at this size"
    assert call("train", *SMALL, "--steps", 1, "--out", out, "--threads", 2).stdout.splitlines()[1] == "2 threads"
    assert load_run(out, "latest")[0].options.threads == 2

    run_training = transformer.cli.train.run_training
    monkeypatch.setattr(transformer.cli.train, "run_training",
                        lambda *args, **kwargs: (used.append(args[6].threads), run_training(*args, **kwargs))[1])
    resume = ["train", "--out", out, "--resume", "--quiet"]
    assert call(*resume, "--steps", 2).stdout.splitlines()[1] == "2 threads"
    assert call(*resume, "--steps", 3, "--threads", 1).stdout.splitlines()[1] == "1 thread"
    call(*resume, "--steps", 4)
    assert used == [2, 1, 1]


@pytest.mark.parametrize("command", ["translate", "evaluate"])
def test_threads_while_it_decodes(command, small_run, monkeypatch):
    """Each thread decodes a part of a batch, and computes its products alone."""
    seen, translate = [], Translator.translate
    monkeypatch.setattr(Translator, "translate", lambda *arguments, **keywords: (
        seen.append((products(), parallel.thread_count())), translate(*arguments, **keywords))[1])
    monkeypatch.setattr("transformer.training.threads.SMALL", 0)
    given = ["--count", 1] * (command == "evaluate")
    with threadpool_limits(2):
        result = call(command, small_run, *given, "--threads", 3, standard_input="a\n")
        assert result.exit_code == 0, result.output
        assert (products(), parallel.thread_count()) == ({2}, 1)
    assert seen == [({1}, 3)]


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
