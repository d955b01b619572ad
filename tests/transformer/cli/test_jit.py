"""``--jit``: compiled kernels while a command runs; without Numba, one line that says so."""

from contextlib import nullcontext

import numpy as np
import pytest

import minigrad.kernels
from minigrad.kernels import is_jit_on

from tests.transformer import runs
from tests.transformer.commands import SMALL, call, refused
from tests.transformer.runs import parameters
from transformer.translator import Translator


@pytest.mark.parametrize("command", ["translate", "evaluate"])
def test_decoding_with_kernels(command, small_run, monkeypatch):
    pytest.importorskip("numba", reason="the extra jit is not installed")
    seen, translate = [], Translator.translate
    monkeypatch.setattr(Translator, "translate", lambda *arguments, **keywords: (
        seen.append(is_jit_on()), translate(*arguments, **keywords))[1])
    given = ["--count", 1] if command == "evaluate" else []
    result = call(command, small_run, *given, "--jit", standard_input="a b\n")
    assert result.exit_code == 0, result.output
    assert seen == [True]
    assert not is_jit_on()


def test_a_run_keeps_its_kernels(tmp_path, monkeypatch):
    """One that is stopped and goes on has the bits of one that was not; what is given to --resume stands."""
    pytest.importorskip("numba", reason="the extra jit is not installed")
    arguments = ["train", *SMALL, "--dropout", 0.2, "--jit"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for out, steps in ((whole, 6), (parts, 3)):
        result = call(*arguments, "--steps", steps, "--out", out)
        assert result.exit_code == 0, result.output
    resume, used = ["train", "--out", parts, "--resume", "--quiet"], []
    result = call(*resume, "--steps", 6)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1] == "1 thread; compiled kernels"
    expected, found = parameters(whole), parameters(parts)
    assert all(np.array_equal(value, found[name]) for name, value in expected.items())
    runs.after_update(monkeypatch, lambda trainer: used.append(is_jit_on()))
    for steps, more in enumerate(([], ["--no-jit"], [], ["--jit"]), 7):
        assert call(*resume, "--steps", steps, *more).exit_code == 0
    assert used == [True, False, False, True]
    assert not is_jit_on()


def test_without_numba(tmp_path, monkeypatch):
    """A run with kernels goes on if it is told to do without them; the first says that it compiles."""
    def load():
        raise ImportError("minigrad.jit needs the package 'numba'")

    out, used = tmp_path / "run", []
    monkeypatch.setattr("transformer.training.loop.jit", nullcontext)
    with monkeypatch.context() as patch:
        patch.setattr(minigrad.kernels, "load", lambda: None)
        patch.setattr(minigrad.kernels, "compiled_before", lambda: False)
        result = call("train", *SMALL, "--steps", 1, "--jit", "--out", out)
        assert "compiled kernels: they are compiled first" in result.stdout
    monkeypatch.setattr(minigrad.kernels, "load", load)
    runs.after_update(monkeypatch, lambda trainer: used.append(trainer.options.jit))
    assert "needs the package 'numba'" in refused("train", *SMALL, "--out", tmp_path / "other", "--jit")
    assert not (tmp_path / "other").exists()
    resume = ["train", "--resume", "--out", out, "--steps", 2, "--quiet"]
    assert "--no-jit goes on without: minigrad.jit needs the package 'numba'" in refused(*resume)
    assert call(*resume, "--no-jit").exit_code == 0
    assert used == [False]
