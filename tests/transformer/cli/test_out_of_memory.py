"""Memory runs out in a command: its one line says what to lower, or where to go."""

import re
import shutil

import pytest

from tests.transformer.commands import SMALL, call, contents, refused
from tests.transformer.shortage import UNABLE, too_much
from transformer.model import Transformer


@pytest.mark.parametrize(("command", "given", "lower"), [
    ("translate", ["--batch-size", 8, "--beam", 4], "lower --batch-size (it is 8) or --beam (it is 4)"),
    ("translate", ["--batch-size", 1], "take a shorter text or a smaller model"),
    ("evaluate", ["--batch-size", 9], "lower --batch-size (it is 9)"),
    ("explain", ["a b", "--text"], "take a shorter text or a smaller model"),
])
def test_commands_that_decode(command, given, lower, small_run, monkeypatch):
    monkeypatch.setattr(Transformer, "encode", too_much)
    monkeypatch.setattr(Transformer, "loss", too_much)
    said = refused(command, small_run, *given, standard_input="a b\n")
    assert re.match(rf"Error: out of memory {UNABLE}; ", said)
    assert said.rstrip().endswith(f"; {lower}")


def test_the_command_that_trains(small_run, tmp_path, monkeypatch):
    """Its checkpoint is as it was, and its line is one."""
    out = shutil.copytree(small_run, tmp_path / "run")
    before = contents(out)
    monkeypatch.setattr(Transformer, "loss", too_much)
    result = call("train", "--resume", "--out", out, "--steps", 3, "--quiet")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith("Error: out of memory at step 3: a batch of ")
    assert contents(out) == before


def test_a_model_that_does_not_fit(small_run, stand_in):
    """No smaller batch helps."""
    stand_in.memory.limit = 3000
    said = refused("translate", small_run, "--beam", 4, "--device", "cuda", standard_input="a b\n")
    assert re.fullmatch(r"Error: out of memory: the model did not fit \(Out of memory allocating .*\); take a "
                        r"smaller model or give --device cpu\n", said), said


def test_the_data_do_not_fit(small_run, tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.cli.sources.read", too_much)
    for way, given in (("take", ["--out", tmp_path / "new", *SMALL]),
                       ("begin anew with", ["--out", small_run, "--resume"])):
        assert re.fullmatch(rf"Error: out of memory {UNABLE}; {way} less text or a smaller model\n",
                            refused("train", *given, "--steps", 3))
