"""The loss scale of float16: it skips what overflows and recovers, is saved, and a run that no scale helps ends."""

import functools
import math

import numpy as np
import pytest

import minigrad
from minigrad import optim
from minigrad.precision.autocast import autocasting

from tests.transformer import runs
from transformer.model import Transformer
from transformer.training.checkpoints import RunError, load_run
from transformer.training.log import Log
from transformer.training.loop import TrainingError

HALF = {"precision": "float16"}
TOO_LARGE = 2.0**24  # a loss scale at which gradients are not finite
SCALER = optim.GradScaler


@pytest.fixture
def scale_of(monkeypatch):
    """Call it with what the loss scale of the next runs begins with."""
    def begin_with(scale):
        monkeypatch.setattr(optim, "GradScaler", functools.partial(SCALER, init_scale=scale))

    return begin_with


def losses(out):
    """The training losses of the log."""
    return np.array([float(row["train_loss"]) for row in Log(out / "log.csv").rows()])


# ----------------------------------------------------------------- a scale that is too large


def test_a_loss_that_is_not_finite_is_skipped_as_well(tmp_path, monkeypatch):
    """As long as it comes back: the mean of the others is logged."""
    inner = Transformer.loss

    def now_and_then(model, *arguments, **keywords):
        loss = inner(model, *arguments, **keywords)
        calls.append(model.training)
        return loss * math.nan if model.training and sum(calls) % 3 == 0 else loss

    calls = []
    monkeypatch.setattr(Transformer, "loss", now_and_then)
    result = runs.run(tmp_path, steps=12, valid_every=12, accumulate=1, **HALF)
    assert np.isfinite(losses(tmp_path)).all()
    assert result.progress.step == 12
    assert load_run(tmp_path)[0].progress["scaler"]["scale"] == SCALER().get_scale() / 2**4


# ----------------------------------------------------------------- no scale helps


@pytest.fixture
def overflowing(monkeypatch):
    """Call it with the step from which the gradients of float16 are not finite, whatever the scale."""
    def begin_at(step):
        monkeypatch.setattr(Transformer, "loss", lambda model, *arguments, **keywords: inner(
            model, *arguments, **keywords) * (math.inf if late() else 1.0))

        def late():
            return autocasting() and minigrad.random.get_state()["step"] >= step

    inner = Transformer.loss
    return begin_at


ENDING = {"steps": 32, "schedule": "constant", "valid_every": 100, "valid_sentences": 1, **HALF}


def the_end(out, **changes):
    """The line with which a run of float16 ends that overflows, 32 updates long."""
    with pytest.raises(TrainingError) as caught:
        runs.run(out, **{**ENDING, **changes})
    return str(caught.value)


@pytest.mark.parametrize(("device", "every"), [("cpu", 1), ("stand-in", 100)], indirect=["device"])
def test_a_run_that_overflows_at_every_update_ends(every, device, tmp_path, overflowing):
    """Once no scale is to blame any more; also if somebody looks after each update."""
    overflowing(0)
    step, scale, way = {1: (18, 0.5, "go on with --resume"), 100: (20, 0.125, "begin anew with")}[every]
    said = the_end(tmp_path, device=device, valid_every=every, accumulate=1)
    assert f"the last {step} updates by step {step} were skipped" in said
    assert f"a loss scale of {scale}; {way} --precision float32 (" in said
    assert np.isnan(losses(tmp_path)).all(), "there was no update to have a loss"
    if every == 1:
        runs.run(tmp_path, resume=True, steps=20, schedule="constant", valid_every=1, accumulate=1)
        assert np.isfinite(losses(tmp_path)[-3:]).all()


# ----------------------------------------------------------------- checkpoints


def test_a_resumed_run_has_the_same_bits(tmp_path, scale_of, monkeypatch):
    """The scale and the steps towards its growth go with the checkpoint: also between skipped updates."""
    monkeypatch.setattr("transformer.training.threads.SMALL", 0)
    monkeypatch.setattr("transformer.training.threads.SHARD_TOKENS", 1)
    scale_of(TOO_LARGE)
    changes = {"threads": 2, "micro_batches": 2, "valid_sentences": 1, "steps": 9, **HALF}
    runs.run(tmp_path / "whole", **changes)
    out = tmp_path / "parts"
    runs.interrupted(out, 2, **changes)
    assert load_run(out, "latest")[0].progress["skipped"] == 2
    runs.interrupted(out, 7, resume=True, **changes)
    runs.run(out, resume=True, **changes)
    assert runs.contents(out) == runs.contents(tmp_path / "whole")
    assert load_run(out, "latest")[0].progress["scaler"]["scale"] < TOO_LARGE / 4


@pytest.fixture
def stopped(tmp_path):
    """A run of two updates, whose run.json may be changed: without checksums."""
    runs.run(tmp_path, steps=2, schedule="constant", **HALF)
    for name in ("model", "optimizer"):
        path = tmp_path / "checkpoints" / "00000002" / f"{name}.safetensors"
        minigrad.checkpoint.save_tensors(path, minigrad.checkpoint.load_tensors(path)[0])
    return tmp_path / "checkpoints" / "00000002" / "run.json"


def test_a_checkpoint_without_the_count_of_skipped_updates(stopped, tmp_path):
    """As earlier versions wrote them."""
    progress = load_run(tmp_path, "latest")[0].progress
    assert progress.pop("skipped") == 0
    runs.edit_json(stopped, progress=progress)
    assert runs.run(tmp_path, resume=True, steps=4, schedule="constant", **HALF).progress.step == 4


def test_a_damaged_scale_is_refused(stopped, tmp_path):
    progress = load_run(tmp_path, "latest")[0].progress
    for state in (5, {}, {"scale": "many"}):
        runs.edit_json(stopped, progress=progress | {"scaler": state})
        before = runs.snapshot(tmp_path)
        with pytest.raises(RunError, match="the latest checkpoint cannot be used: "):
            runs.run(tmp_path, resume=True, steps=4, schedule="constant", **HALF)
        assert runs.snapshot(tmp_path) == before
