"""``precision``: on a GPU float16 learns as float32 does, skips what overflows and recovers; a CPU has none."""

import functools
import itertools
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
from transformer.training.loop import REPORT_EVERY, TrainingError, _read_losses
from transformer.training.run_folder import RunError

HALF = {"precision": "float16"}
TOO_LARGE = 2.0**24  # a loss scale at which gradients are not finite
SCALER = optim.GradScaler
on_a_gpu = pytest.mark.parametrize("device", DEVICES[1:], indirect=True)


def losses(out):
    """The training losses of the log."""
    return np.array([float(row["objective"]) for row in Log(out / "log.csv").rows()])


def bits(trainer):
    """Of the parameters and the optimizer's state."""
    state = {f"{i} {name}": value for i, entry in trainer.optimizer.state_dict()["state"].items()
             for name, value in entry.items()}
    return runs.bits({name: p.numpy() for name, p in trainer.model.named_parameters()} | state)


# ----------------------------------------------------------------- float16


def both(out, device, **changes):
    """The training losses of a run in float32 and of one in float16; one differs, or nothing was in float16."""
    model = {"d_model": 32, "num_heads": 4, "d_ff": 64, "dropout": 0.0}
    options = {"valid_every": 20, "valid_sentences": 1, "label_smoothing": 0.0, "batch_tokens": 200, "accumulate": 1}
    for precision in ("float32", "float16"):
        runs.run(out / precision, model=model, device=device, precision=precision, **{**options, **changes})
    single, half = losses(out / "float32"), losses(out / "float16")
    assert (half != single).any()
    return single, half


@pytest.mark.parametrize("changes", [{"shards": 2, "accumulate": 2}, {"micro_batches": 2, "clip_norm": None}])
@on_a_gpu
def test_batches_in_parts_have_the_losses_of_float32(changes, device, tmp_path):
    single, half = both(tmp_path, device, steps=10, valid_every=5, **changes)
    np.testing.assert_allclose(half, single, rtol=0.005)


@on_a_gpu
def test_an_update_that_overflows_changes_nothing_and_training_recovers(device, tmp_path, monkeypatch):
    """Parameters and the optimizer's state stay as they are, bit for bit; neither its loss nor its tokens count."""
    monkeypatch.setattr(optim, "GradScaler", functools.partial(SCALER, init_scale=TOO_LARGE))
    trainer = runs.new_trainer(tmp_path, {"dropout": 0.0}, device=device, steps=30, valid_every=30, **HALF)
    states, counted, groups = [bits(trainer)], [], trainer.groups()
    for _ in range(20):
        group = next(groups)
        with minigrad.no_grad():
            loss = sum(float(trainer.model.loss(*shard, trainer.options.label_smoothing, reduction="sum"))
                       for part in group.parts for shard in part.shards)
        trainer.update(group)
        states.append(bits(trainer))
        if states[-1] != states[-2]:
            counted.append((loss, group.tokens))
    skipped = sum(before == after for before, after in itertools.pairwise(states))
    assert states[0] == states[1]
    assert 2 <= skipped < REPORT_EVERY
    assert trainer.scaler.get_scale() == TOO_LARGE / 2**skipped
    _read_losses(trainer)
    assert trainer.progress.loss_tokens == sum(tokens for _, tokens in counted) < trainer.progress.tokens
    assert trainer.progress.loss_sum == pytest.approx(sum(loss for loss, _ in counted), rel=2e-3)
    assert trainer.progress.step == 20
    assert trainer.scheduler.last_step == 20


@on_a_gpu
def test_a_run_may_change_its_precision(device, tmp_path):
    """One that begins with float16 later has a new scale; one that leaves it keeps none."""
    out = tmp_path / "run"
    fresh = SCALER().state_dict()
    options = {"schedule": "constant", "valid_every": 2, "device": device}
    runs.run(out, steps=2, **options)
    assert "scaler" not in load_run(out, "latest")[0].progress
    runs.run(out, resume=True, steps=4, **options, **HALF)
    saved = load_run(out, "latest")[0].progress["scaler"]
    assert saved.keys() == fresh.keys()
    assert saved["scale"] == fresh["scale"]
    runs.run(out, resume=True, steps=6, **options)
    progress = load_run(out, "latest")[0].progress
    assert "scaler" not in progress
    assert progress["step"] == 6


def test_a_cpu_has_no_mixed_precision(stand_in, tmp_path):
    """A run that is refused leaves no folder; one that began on a GPU goes on in float32."""
    out = tmp_path / "run"
    with pytest.raises(RunError, match=r"^float16 is mixed precision, which needs a GPU: .* --precision float32$"):
        runs.run(out, **HALF)
    assert not out.exists()
    runs.run(out, device="cuda", steps=2, schedule="constant", **HALF)
    with pytest.raises(RunError, match="needs a GPU"):
        runs.run(out, resume=True, steps=4, schedule="constant", **HALF)
    assert runs.run(out, resume=True, steps=4, schedule="constant").progress.step == 4


# ----------------------------------------------------------------- the loss scale


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
