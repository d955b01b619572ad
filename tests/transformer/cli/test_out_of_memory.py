"""Memory runs out in a command: its one line says what to lower, or where to go."""

import re
import shutil

import pytest

from tests.transformer.commands import call, contents, refused
from tests.transformer.shortage import UNABLE, failing, too_much
from transformer.model import Transformer


@pytest.mark.parametrize(("command", "given", "lower"), [
    ("translate", ["--batch-size", 8, "--beam", 4], "lower --batch-size or --beam, or take a smaller model"),
    ("evaluate", ["--batch-size", 9], "lower --batch-size or --beam, or take a smaller model"),
    ("explain", ["a b", "--text"], "take a shorter text or a smaller model"),
    ("write-out", ["a b", "a b"], "take a shorter text or a smaller model"),
])
def test_commands_that_decode(command, given, lower, small_run, monkeypatch):
    monkeypatch.setattr(Transformer, "encode", too_much)
    monkeypatch.setattr(Transformer, "loss", too_much)
    said = refused(command, small_run, *given, standard_input="a b\n")
    assert re.match(rf"Error: out of memory {UNABLE}; ", said)
    assert said.rstrip().endswith(f"; {lower}")


@pytest.mark.parametrize("status", ["", "cudaErrorMemoryAllocation", "CUBLAS_STATUS_ALLOC_FAILED"])
def test_the_command_that_trains(status, small_run, tmp_path, monkeypatch):
    """NumPy says so by MemoryError, CUDA by the status in other errors. The checkpoint is as it was."""
    out = shutil.copytree(small_run, tmp_path / "run")
    before = contents(out)
    monkeypatch.setattr(Transformer, "loss", failing(RuntimeError(f"{status}: it is full.")) if status else too_much)
    result = call("train", "--resume", "--out", out, "--steps", 3, "--quiet")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    told = rf"\({status}: it is full\)" if status else UNABLE
    remedy = "begin anew with a lower --batch-tokens or a smaller model"
    assert re.fullmatch(f"Error: out of memory {told}; {remedy}\n", result.stderr)
    assert contents(out) == before


def test_other_errors_of_cuda_are_not_about_memory(small_run, monkeypatch):
    monkeypatch.setattr(Transformer, "encode", failing(RuntimeError("cudaErrorIllegalAddress: an illegal address")))
    result = call("translate", small_run, standard_input="a b\n")
    assert str(result.exception) == "cudaErrorIllegalAddress: an illegal address"


def test_a_model_for_which_a_gpu_is_too_small(small_run, stand_in):
    stand_in.memory.limit = 3000
    said = refused("translate", small_run, "--batch-size", 1, "--device", "cuda", standard_input="a b\n")
    assert re.match(r"Error: out of memory \(Out of memory allocating .*\); lower --batch-size", said), said
