"""``--threads``: how many a command takes, what it says of it, and that a run keeps its number."""


import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from minigrad import parallel

import transformer.cli.train
from tests.transformer import runs
from tests.transformer.commands import SMALL, call
from transformer.training.checkpoints import load_run
from transformer.training.options import TrainingOptions
from transformer.training.threads import SETTINGS
from transformer.translator import Translator

LARGE = ["--task", "copy", "--train-count", 60, "--valid-count", 5, "--d-model", 256, "--batch-tokens", 600]


@pytest.fixture(autouse=True)
def three_cores(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("transformer.cli.train.usable_threads", lambda: 3)
    monkeypatch.setattr("transformer.training.threads.usable_threads", lambda: 3)


def products():
    return {pool["num_threads"] for pool in threadpool_info()}


@pytest.mark.parametrize(("model", "arguments", "threads"), [
    (SMALL, [], 1), (SMALL, ["--threads", 2], 2), (LARGE, [], 2), (LARGE, ["--batch-tokens", 5000], 3),
    (LARGE, ["--threads", 1], 1), (LARGE, ["--device", "cuda"], None), (LARGE, ["--device", "cuda", "--threads", 2], 2),
], ids=str)
def test_how_many(model, arguments, threads, begun, tmp_path, stand_in):
    call("train", *model, "--out", tmp_path, *arguments)
    [run] = begun
    assert run.options.threads == threads


@pytest.mark.parametrize(("arguments", "line"), [
    ([], "1 thread: more would gain nothing at this size"), (["--threads", 1], "1 thread"),
    (["--threads", 2], "2 threads"),
])
def test_what_it_says(arguments, line, tmp_path):
    result = call("train", *SMALL, "--steps", 1, "--out", tmp_path / "run", *arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1] == line
    assert "1 step" in result.stdout.splitlines()[2]


def test_on_a_gpu_it_says_nothing(tmp_path, stand_in):
    result = call("train", *SMALL, "--steps", 1, "--out", tmp_path / "run", "--device", "cuda")
    assert result.exit_code == 0, result.output
    assert "thread" not in result.stdout


@pytest.mark.parametrize("threads", [None, 1, 2])
def test_threads_and_products_while_it_trains(threads, tmp_path, monkeypatch):
    """Of a small model, as `runs.config` is, a batch is not divided, but its products are; None: they neither."""
    seen = []
    runs.after_update(monkeypatch, lambda trainer: seen.append((parallel.thread_count(), products())))
    with threadpool_limits(2):
        runs.run(tmp_path, steps=1, threads=threads)
        assert products() == {2}
    assert seen == [(1, {threads or 1})]


def test_threads_that_divide_a_batch_have_one_thread_each_for_products(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("transformer.training.threads.SMALL", 0)
    monkeypatch.setattr("transformer.training.threads.SHARD_TOKENS", 1)
    runs.after_update(monkeypatch, lambda trainer: seen.append((parallel.thread_count(), products())))
    with threadpool_limits(2):
        runs.run(tmp_path, steps=1, threads=2)
    assert seen == [(2, {1})]


def test_a_run_keeps_its_number(tmp_path, monkeypatch):
    """Whatever the machine; what is given to --resume stands."""
    out, used = tmp_path / "run", []
    assert call("train", *SMALL, "--steps", 1, "--out", out, "--threads", 2).exit_code == 0
    assert load_run(out, "latest")[0].training["threads"] == 2

    run_training = transformer.cli.train.run_training
    monkeypatch.setattr(transformer.cli.train, "run_training",
                        lambda *args, **kwargs: (used.append(args[6].threads), run_training(*args, **kwargs))[1])
    result = call("train", "--out", out, "--resume", "--steps", 2, "--quiet")
    assert result.stdout.splitlines()[1] == "2 threads"
    call("train", "--out", out, "--resume", "--steps", 3, "--quiet", "--threads", 1)
    call("train", "--out", out, "--resume", "--steps", 4, "--quiet")
    assert used == [2, 1, 1]


def test_a_run_that_does_not_say_how_many_is_not_divided(tmp_path, stand_in):
    """As one that was begun before there was a choice, or on a GPU."""
    assert TrainingOptions.from_json({"steps": 1}).threads is None
    out = tmp_path / "run"
    assert call("train", *SMALL, "--steps", 1, "--out", out, "--device", "cuda").exit_code == 0
    result = call("train", "--out", out, "--resume", "--steps", 2, "--quiet")
    assert result.exit_code == 0, result.output
    assert "thread" not in result.stdout
    assert load_run(out, "latest")[0].training["threads"] is None


@pytest.mark.parametrize(("small", "arguments", "expected"), [
    (128, [], ({2}, 1)), (128, ["--threads", 1], ({1}, 1)), (128, ["--threads", 3], ({3}, 1)),
    (0, ["--threads", 1], ({1}, 1)), (0, ["--threads", 3], ({1}, 3)),
], ids=str)
@pytest.mark.parametrize("command", ["translate", "evaluate"])
def test_threads_while_it_decodes(command, small, arguments, expected, run, tmp_path, monkeypatch):
    """They share its products; or each decodes a part of a batch, with one thread for products."""
    seen = []
    translate = Translator.translate

    def watched(*positional, **keywords):
        seen.append((products(), parallel.thread_count()))
        return translate(*positional, **keywords)

    monkeypatch.setattr(Translator, "translate", watched)
    monkeypatch.setattr("transformer.training.threads.SMALL", small)
    text = tmp_path / "text"
    text.write_text("one\n")
    options = {"translate": [], "evaluate": ["--source", text, "--target", text]}[command]
    with threadpool_limits(2):
        result = call(command, run, *options, *arguments, standard_input="one\n")
        assert result.exit_code == 0, result.output
        assert products() == {2}
        assert parallel.thread_count() == 1
    assert seen == [expected]
