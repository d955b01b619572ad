"""Memory runs out in a command: its one line says what to lower, or where to go."""

import re

import pytest

from tests.transformer.commands import call, refused
from tests.transformer.runs import snapshot
from tests.transformer.shortage import UNABLE, failing, too_much
from transformer.model import Transformer

BEGIN, LOWER, SHORTER = ("begin anew with a lower --batch-tokens or a smaller model",
                         "lower --batch-size or --beam, or take a smaller model",
                         "take a shorter text or a smaller model")


@pytest.mark.parametrize(("command", "given", "remedy"), [
    ("translate", ["--batch-size", 8, "--beam", 4], LOWER), ("evaluate", ["--batch-size", 9], LOWER),
    ("explain", ["a b", "--text"], SHORTER), ("write-out", ["a b", "a b"], SHORTER),
    ("train", ["--resume", "--steps", 3, "--quiet", "--out"], BEGIN)])
@pytest.mark.parametrize("status", ["", "cudaErrorMemoryAllocation", "CUBLAS_STATUS_ALLOC_FAILED"])
def test_a_command_says_what_to_lower(command, given, remedy, status, small_run, monkeypatch):
    """NumPy says so by MemoryError, CUDA by the status in other errors. The run is as it was."""
    before, fail = snapshot(small_run), failing(RuntimeError(f"{status}: it is full.")) if status else too_much
    monkeypatch.setattr(Transformer, "encode", fail)
    monkeypatch.setattr(Transformer, "loss", fail)
    words = [*given, small_run] if command == "train" else [small_run, *given]
    result = call(command, *words, standard_input="a b\n")
    told = rf"\({status}: it is full\)" if status else UNABLE
    assert result.exit_code == 2
    assert re.fullmatch(f"Error: out of memory {told}; {remedy}\n", result.stderr)
    assert snapshot(small_run) == before


def test_other_errors_of_cuda_are_not_about_memory(small_run, monkeypatch):
    monkeypatch.setattr(Transformer, "encode", failing(RuntimeError("cudaErrorIllegalAddress: an illegal address")))
    result = call("translate", small_run, standard_input="a b\n")
    assert str(result.exception) == "cudaErrorIllegalAddress: an illegal address"


def test_a_model_for_which_a_gpu_is_too_small(small_run, stand_in):
    stand_in.memory.limit = 3000
    said = refused("translate", small_run, "--batch-size", 1, "--device", "cuda", standard_input="a b\n")
    assert re.match(r"Error: out of memory \(Out of memory allocating .*\); lower --batch-size", said), said
