"""``precision``: on a GPU float16 learns as float32 does, skips what overflows and recovers; a CPU has none."""

import functools
import itertools

import numpy as np
import pytest

import minigrad
from minigrad import optim

from tests.conftest import DEVICES
from tests.transformer import runs
from transformer.training.checkpoints import load_run
from transformer.training.log import Log
from transformer.training.loop import REPORT_EVERY, _read_losses
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
