"""``--jit``: compiled kernels while a command runs, in all of its threads; without Numba, one line that says so."""

import numpy as np
import pytest

import minigrad.kernels
from minigrad.modes import compiled_kernels

from tests.transformer.commands import SMALL, call, refused
from tests.transformer.runs import parameters
from transformer.translator import Translator


@pytest.fixture
def numba():
    pytest.importorskip("numba", reason="the extra jit is not installed")


@pytest.mark.usefixtures("numba")
@pytest.mark.parametrize("threads", [1, 2])
def test_training_with_kernels_gives_the_same_but_for_rounding(threads, tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.threads.SMALL", 0)
    arguments = [*SMALL, "--steps", 3, "--dropout", 0.2, "--threads", threads]
    for name, more in (("plain", []), ("compiled", ["--jit"])):
        result = call("train", *arguments, "--out", tmp_path / name, *more)
        assert result.exit_code == 0, result.output
    plain, compiled = parameters(tmp_path / "plain"), parameters(tmp_path / "compiled")
    for name, value in plain.items():
        if not name.endswith("key.bias"):  # whose gradients are rounding alone, of which Adam makes whole steps
            np.testing.assert_allclose(compiled[name], value, rtol=0, atol=2e-5, err_msg=name)
    assert any((compiled[name] != value).any() for name, value in plain.items()), "no kernel ran"


@pytest.mark.usefixtures("numba")
@pytest.mark.parametrize("command", ["translate", "evaluate"])
def test_decoding_with_kernels(command, run, monkeypatch):
    seen = []
    translate = Translator.translate

    def watched(*arguments, **keywords):
        seen.append(compiled_kernels.get())
        return translate(*arguments, **keywords)

    monkeypatch.setattr(Translator, "translate", watched)
    given = {"standard_input": "one two\n"} if command == "translate" else {}
    pairs = []
    if command == "evaluate":
        for side in ("source", "target"):
            path = run.parent / f"jit.{side}"
            path.write_text("one two\n" if side == "source" else "一 二\n", encoding="utf-8")
            pairs += [f"--{side}", path]
    for more in ([], ["--jit"]):
        result = call(command, run, *pairs, *more, **given)
        assert result.exit_code == 0, result.output
    assert seen == [False, True]
    assert not compiled_kernels.get()


def test_without_numba(tmp_path, monkeypatch):
    def load():
        raise ImportError("minigrad.jit needs the package 'numba'")

    monkeypatch.setattr(minigrad.kernels, "load", load)
    assert "needs the package 'numba'" in refused("train", *SMALL, "--out", tmp_path / "run", "--jit")
    assert not (tmp_path / "run").exists()
