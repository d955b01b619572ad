"""Memory runs out: the last checkpoint is intact, and the run goes on from it, in smaller parts where that helps."""

import gc

import numpy as np
import pytest

from tests.transformer import runs
from tests.transformer.shortage import too_much
from transformer.training.packed import packed_loss
from transformer.training.run_folder import numbered

OPTIONS = {"steps": 6, "schedule": "constant"}


def test_the_run_goes_on_from_the_last_checkpoint(tmp_path, monkeypatch):
    """As if it had never been stopped."""
    def at_step_5(*arguments, **keywords):
        calls.append(1)
        return packed_loss(*arguments, **keywords) if len(calls) <= 4 * 2 else too_much()

    calls, out = [], tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("transformer.training.parallel_gradients.packed_loss", at_step_5)
        with pytest.raises(MemoryError):
            runs.run(out, **OPTIONS)
    assert numbered(out) == ["00000004"]
    runs.run(out, resume=True, **OPTIONS)
    runs.run(tmp_path / "whole", **OPTIONS)
    assert runs.contents(out) == runs.contents(tmp_path / "whole")


def peak(stand_in, out, **changes):
    """The most memory that a run takes on the stand-in."""
    gc.collect()  # what earlier tests left behind
    stand_in.memory.clear()
    runs.run(out, **changes, device="cuda")
    return stand_in.memory.held[0]


def test_a_batch_that_a_gpu_has_no_room_for(stand_in, tmp_path):
    """From the checkpoint the run goes on in parts, with the memory that there is."""
    out = tmp_path / "run"
    shared = {"model": {"d_ff": 2000, "dropout": 0.0}, "steps": 3, "schedule": "constant", "valid_sentences": 1}
    sizes = {parts: peak(stand_in, tmp_path / str(parts), **shared, micro_batches=parts) for parts in (1, 4)}
    assert sizes[4] < 0.9 * sizes[1]
    runs.interrupted(out, 1, **shared, device="cuda")
    before = runs.snapshot(out)
    stand_in.memory.clear()
    stand_in.memory.limit = (sizes[1] + sizes[4]) // 2
    with pytest.raises(MemoryError):
        runs.run(out, **shared, resume=True, device="cuda")
    assert runs.snapshot(out) == before
    gc.collect()
    runs.run(out, resume=True, **shared, device="cuda", micro_batches=4)
    for name, array in runs.parameters(tmp_path / "1").items():
        if not name.endswith("key.bias"):  # its gradient is 0 but for rounding, of which Adam makes full steps
            np.testing.assert_allclose(runs.parameters(out)[name], array, rtol=0, atol=1e-5, err_msg=name)


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
