"""A run whose weights, moments or validation loss are no longer finite: it ends in one line, its checkpoints intact."""

import signal

import numpy as np
import pytest

from minigrad.checkpoint import load_tensors, save_tensors

from tests.transformer import runs
from transformer.training.log import Log
from transformer.training.loop import TrainingError
from transformer.training.run_folder import RunError

NAME = "encoder.layers.0.feed_forward.inner.weight"


def weight(trainer, value=np.inf):
    dict(trainer.model.named_parameters())[NAME].data[0, 0] = value


def moment(trainer):
    state = trainer.optimizer.state_dict()
    state["state"][2]["exp_avg_sq"].flat[0] = np.inf
    trainer.optimizer.load_state_dict(state)


def huge(trainer):
    for parameter in trainer.model.parameters():
        parameter.data *= 1e30


def nan(trainer):
    weight(trainer, np.nan)


@pytest.mark.parametrize(("spoil", "step", "interrupt", "named"), [
    (nan, 5, False, "the loss became nan"), (weight, 8, False, NAME), (weight, 6, True, NAME),
    (moment, 8, False, r"the optimizer's \w+\..*exp_avg_sq"), (moment, 6, True, r"the optimizer's \w+\..*exp_avg_sq"),
    (huge, 8, False, "finite, but too large"),
])
def test_what_is_not_finite_ends_the_run(spoil, step, interrupt, named, tmp_path, monkeypatch):
    """The update before the validation of step 8, or before Ctrl-C, spoils the run; or one whose loss is read later."""
    before = {}

    def act(trainer):
        if trainer.progress.step == step:
            before.update(runs.snapshot(tmp_path))
            spoil(trainer)
            if interrupt:
                signal.raise_signal(signal.SIGINT)

    runs.after_update(monkeypatch, act)
    message = rf"{named}.* by step [68]; begin anew with a lower .*00000004, is intact"
    with pytest.raises(TrainingError, match=message) as caught:
        runs.run(tmp_path)
    assert "\n" not in str(caught.value)
    after = runs.snapshot(tmp_path)
    assert {name: data for name, data in after.items() if name != "log.csv"} == {
        name: data for name, data in before.items() if name != "log.csv"}
    assert all(np.isfinite(float(row["valid_loss"])) for row in Log(tmp_path / "log.csv").rows())


@pytest.mark.parametrize(("file", "name"), [("model", NAME), ("optimizer", f"{NAME}.exp_avg_sq")])
def test_a_checkpoint_of_an_older_version_is_not_resumed(file, name, out):
    path = out / "checkpoints/00000006" / f"{file}.safetensors"
    arrays, metadata = load_tensors(path)
    arrays[name].flat[-1] = np.nan
    save_tensors(path, arrays, metadata)
    before = runs.snapshot(out)
    with pytest.raises(RunError, match=f"{name}.* holds a NaN") as caught:
        runs.run(out, resume=True, steps=8, schedule="constant", keep=3)
    assert "\n" not in str(caught.value)
    assert runs.snapshot(out) == before
