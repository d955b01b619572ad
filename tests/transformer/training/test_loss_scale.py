"""The loss scale of float16: it skips what overflows and recovers, is saved, and a run that no scale helps ends."""

import functools
import math

import numpy as np
import pytest

import minigrad
from minigrad import optim
from minigrad.precision import autocasting

from tests.conftest import DEVICES
from tests.transformer import runs
from transformer.model import Transformer
from transformer.training.checkpoints import load_run
from transformer.training.log import Log
from transformer.training.loop import TrainingError
from transformer.training.run_folder import RunError

HALF = {"precision": "float16"}
TOO_LARGE = 2.0**24  # a loss scale at which gradients are not finite
SCALER = optim.GradScaler
on_a_gpu = pytest.mark.parametrize("device", DEVICES[1:], indirect=True)


def losses(out):
    """The training losses of the log."""
    return np.array([float(row["objective"]) for row in Log(out / "log.csv").rows()])


@on_a_gpu
def test_a_loss_that_is_not_finite_is_skipped_as_well(device, tmp_path, monkeypatch):
    """As long as it comes back: the mean of the others is logged."""
    inner = Transformer.loss

    def now_and_then(model, *arguments, **keywords):
        loss = inner(model, *arguments, **keywords)
        calls.append(model.training)
        return loss * math.nan if model.training and sum(calls) % 3 == 0 else loss

    calls = []
    monkeypatch.setattr(Transformer, "loss", now_and_then)
    result = runs.run(tmp_path, device=device, steps=12, valid_every=12, accumulate=1, **HALF)
    assert np.isfinite(losses(tmp_path)).all()
    assert result.progress.step == 12
    assert load_run(tmp_path)[0].progress["scaler"]["scale"] == SCALER().get_scale() / 2**4


@pytest.mark.parametrize("every", [1, 100])
@on_a_gpu
@pytest.mark.parametrize("start", [0, 5])
def test_a_run_that_overflows_at_every_update_ends(start, every, device, tmp_path, monkeypatch):
    """Once no scale is to blame any more; also if somebody looks after each update.

    After some updates that were made the learning rate may be to blame, which a run that goes on cannot change.
    """
    inner = Transformer.loss

    def overflowing(model, *arguments, **keywords):
        late = autocasting() and minigrad.random.get_state()["step"] >= start
        return inner(model, *arguments, **keywords) * (math.inf if late else 1.0)

    options = {"steps": 32, "schedule": "constant", "valid_every": every, "valid_sentences": 1, "accumulate": 1}
    with monkeypatch.context() as patch:
        patch.setattr(Transformer, "loss", overflowing)
        with pytest.raises(TrainingError) as caught:
            runs.run(tmp_path, device=device, **options, **HALF)
    said = str(caught.value)
    assert ("go on with --resume" in said) == (every == 1)
    assert "--precision float32" in said
    assert ("lower learning rate" in said) == (start > 0)
    assert np.isnan(losses(tmp_path)[start:]).all(), "there was no update to have a loss"
    if every == 1:
        runs.run(tmp_path, resume=True, device=device, **{**options, "steps": 20 + start})
        assert np.isfinite(losses(tmp_path)[-1])


def test_a_resumed_run_has_the_same_bits(stand_in, tmp_path, monkeypatch):
    """The scale and the steps towards its growth go with the checkpoint: also between skipped updates."""
    monkeypatch.setattr(optim, "GradScaler", functools.partial(SCALER, init_scale=TOO_LARGE))
    changes = {"device": "cuda", "shards": 2, "micro_batches": 2, "valid_sentences": 1, "steps": 9, **HALF}
    runs.run(tmp_path / "whole", **changes)
    out = tmp_path / "parts"
    runs.interrupted(out, 2, **changes)
    assert load_run(out, "latest")[0].progress["skipped"] == 2
    runs.interrupted(out, 7, resume=True, **changes)
    runs.run(out, resume=True, **changes)
    assert runs.contents(out) == runs.contents(tmp_path / "whole")
    assert load_run(out, "latest")[0].progress["scaler"]["scale"] < TOO_LARGE / 4


def test_a_damaged_scale_is_refused(stand_in, tmp_path):
    options = {"device": "cuda", "schedule": "constant", **HALF}
    runs.run(tmp_path, steps=2, **options)
    checkpoint = tmp_path / "checkpoints" / "00000002"
    progress = load_run(tmp_path, "latest")[0].progress
    for state in (5, {}, {"scale": "many"}):
        runs.edit_json(checkpoint / "run.json", progress=progress | {"scaler": state})
        with pytest.raises(RunError, match="the checkpoint 00000002 cannot be used: "):
            runs.run(tmp_path, resume=True, steps=4, **options)
