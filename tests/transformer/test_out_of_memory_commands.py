"""Memory runs out in a command: its one line says what to lower, or where to go."""

import re

import pytest

from tests.transformer.commands import SMALL, call, contents, refused
from tests.transformer.shortage import UNABLE, failing, too_much
from transformer.model import Transformer
from transformer.translator import Translator


def test_fewer_sentences_to_decode_take_less_memory(run, stand_in):
    """For the loss, too, which the same command computes."""
    translator = Translator.load(run, "cuda")
    pairs, held = [("one two three", "一 二 三")] * 64, []
    for batch_size in (64, 2):
        stand_in.memory.clear()
        translator.evaluate(pairs, batch_size=batch_size)
        held.append(stand_in.memory.held[0])
    assert held[1] < 0.5 * held[0]


@pytest.mark.parametrize(("command", "given", "lower"), [
    ("translate", [], "lower --batch-size (it is 64)"),
    ("translate", ["--batch-size", 8, "--beam", 4], "lower --batch-size (it is 8) or --beam (it is 4)"),
    ("translate", ["--batch-size", 1, "--beam", 3], "lower --beam (it is 3)"),
    ("translate", ["--batch-size", 1], "take a shorter text or a smaller model"),
    ("evaluate", ["--batch-size", 9], "lower --batch-size (it is 9)"),
    ("explain", ["one two", "--text"], "take a shorter text or a smaller model"),
])
def test_commands_that_decode(command, given, lower, run, tmp_path, monkeypatch):
    monkeypatch.setattr(Transformer, "encode", too_much)
    monkeypatch.setattr(Transformer, "loss", too_much)
    files = []
    if command == "evaluate":
        for side, text in (("source", "one two\n"), ("target", "一 二\n")):
            (tmp_path / side).write_text(text, encoding="utf-8")
            files += [f"--{side}", tmp_path / side]
    said = refused(command, run, *files, *given, standard_input="one two\n" if command == "translate" else None)
    assert re.match(rf"Error: out of memory {UNABLE}; ", said)
    assert said.rstrip().endswith(f"; {lower}")


def test_the_command_that_trains(tmp_path, monkeypatch):
    """Its checkpoint is as it was, and its line is one."""
    out = tmp_path / "run"
    assert call("train", *SMALL, "--steps", 2, "--out", out).exit_code == 0
    before = contents(out)
    monkeypatch.setattr(Transformer, "loss", too_much)
    result = call("train", "--resume", "--out", out, "--steps", 3, "--quiet")
    assert result.exit_code == 2
    assert re.fullmatch(r"Error: out of memory at step 3: a batch of .*; go on with --resume --micro-batches 2 or "
                        r"more, .*\n", result.stderr)
    assert {path: data for path, data in contents(out).items() if path.suffix != ".png"} == \
        {path: data for path, data in before.items() if path.suffix != ".png"}


def test_a_model_that_does_not_fit(run, stand_in, tmp_path):
    """No smaller batch helps."""
    for side, text in (("source", "one two\n"), ("target", "一 二\n")):
        (tmp_path / side).write_text(text, encoding="utf-8")
    files = ["--source", tmp_path / "source", "--target", tmp_path / "target"]
    for command, given in (("translate", ["--beam", 4]), ("evaluate", files), ("explain", ["one two", "--text"])):
        stand_in.memory.limit = 3000
        said = refused(command, run, *given, "--device", "cuda", standard_input="one two\n")
        assert re.fullmatch(r"Error: out of memory: the model did not fit \(Out of memory allocating .*\); take a "
                            r"smaller model or give --device cpu\n", said), said


@pytest.mark.parametrize("status", ["cudaErrorMemoryAllocation: out of memory", "CUBLAS_STATUS_ALLOC_FAILED"])
def test_cuda_has_other_names_for_it(status, run, stand_in, monkeypatch):
    monkeypatch.setattr(Transformer, "encode", failing(RuntimeError(status)))
    said = refused("translate", run, "--batch-size", 2, "--device", "cuda", standard_input="one two\n")
    assert said == f"Error: out of memory ({status}); lower --batch-size (it is 2) or give --device cpu\n"


def test_the_data_do_not_fit(tmp_path, monkeypatch):
    out = tmp_path / "run"
    assert call("train", *SMALL, "--steps", 2, "--out", out).exit_code == 0
    monkeypatch.setattr("transformer.cli.sources.read", too_much)
    for way, given in (("take", ["--out", tmp_path / "new", *SMALL]), ("begin anew with", ["--out", out, "--resume"])):
        assert re.fullmatch(rf"Error: out of memory {UNABLE}; {way} less text or a smaller model\n",
                            refused("train", *given, "--steps", 3))


def test_a_finished_run_whose_model_is_not_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(Translator, "load", too_much)
    result = call("train", *SMALL, "--steps", 2, "--out", tmp_path)
    assert result.exit_code == 2
    assert re.match(r"Error: the run is finished, and its best checkpoint, 00000002, is intact; but there is too "
                    rf"little memory to load it {UNABLE}; use it where there is more memory$",
                    result.stderr.splitlines()[-1])
