"""Memory runs out: the last checkpoint is intact, and the run goes on from it."""

import pytest

from tests.transformer import runs
from tests.transformer.shortage import too_much
from transformer import Transformer
from transformer.training.run_folder import numbered

OPTIONS = {"steps": 6, "schedule": "constant"}


def test_the_run_goes_on_from_the_last_checkpoint(tmp_path, monkeypatch):
    """As if it had never been stopped."""
    def at_step_5(model, *arguments, **keywords):
        calls.append(model.training)  # validations call it, too
        return loss(model, *arguments, **keywords) if sum(calls) <= 4 * 2 else too_much()

    calls, loss, out = [], Transformer.loss, tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Transformer, "loss", at_step_5)
        with pytest.raises(MemoryError):
            runs.run(out, **OPTIONS)
    assert numbered(out) == ["00000004"]
    runs.run(out, resume=True, **OPTIONS)
    runs.run(tmp_path / "whole", **OPTIONS)
    assert runs.contents(out) == runs.contents(tmp_path / "whole")


def test_a_run_that_cannot_begin_or_go_on(stand_in, tmp_path):
    """The folder stays as it was."""
    out = tmp_path / "run"
    stand_in.memory.limit = 3000
    with pytest.raises(MemoryError):
        runs.run(out, **OPTIONS, device="cuda")
    assert not out.exists()
    stand_in.memory.clear()
    runs.interrupted(out, 2, **OPTIONS, device="cuda")
    before = runs.snapshot(out)
    stand_in.memory.clear()
    stand_in.memory.limit = 3000
    with pytest.raises(MemoryError):
        runs.run(out, resume=True, **OPTIONS, device="cuda")
    assert runs.snapshot(out) == before
