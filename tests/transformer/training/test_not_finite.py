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


CAUSES = {"weight": (weight, NAME), "moment": (moment, r"the optimizer's \w+\..*exp_avg_sq"),
          "huge": (huge, "finite, but too large")}


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("interrupt", [False, True])
def test_after_the_last_reading_of_the_loss(cause, interrupt, tmp_path, monkeypatch):
    """The update before the validation of step 8, or before Ctrl-C, is the one that spoils the run."""
    spoil, named = CAUSES[cause]
    before = {}

    def act(trainer):
        if trainer.progress.step == (6 if interrupt else 8):
            before.update(runs.snapshot(tmp_path))
            spoil(trainer)
            if interrupt:
                signal.raise_signal(signal.SIGINT)

    runs.after_update(monkeypatch, act)
    if interrupt and cause == "huge":  # a checkpoint of finite weights is one; the next validation finds them too large
        with pytest.raises(KeyboardInterrupt):
            runs.run(tmp_path)
        return
    with pytest.raises(TrainingError, match=rf"{named}.* by step [68]; .*00000004, is intact") as caught:
        runs.run(tmp_path)
    assert "\n" not in str(caught.value)
    after = runs.snapshot(tmp_path)
    assert {name: data for name, data in after.items() if name != "log.csv"} == {
        name: data for name, data in before.items() if name != "log.csv"}
    assert all(np.isfinite(float(row["valid_loss"])) for row in Log(tmp_path / "log.csv").rows())


def edit(path, change):
    arrays, metadata = load_tensors(path)
    change(arrays)
    save_tensors(path, arrays, metadata)


def spoiled(arrays):
    next(value for key, value in sorted(arrays.items()) if key.endswith((NAME, f"{NAME}.exp_avg_sq"))).flat[-1] = np.nan


@pytest.mark.parametrize(("file", "named"), [("model", NAME), ("optimizer", f"{NAME}.exp_avg_sq")])
def test_a_checkpoint_of_an_older_version_is_not_resumed(file, named, out):
    edit(out / "checkpoints/00000006" / f"{file}.safetensors", spoiled)
    before = runs.snapshot(out)
    with pytest.raises(RunError, match=f"{named}.* holds a NaN") as caught:
        runs.run(out, resume=True, steps=8, schedule="constant", keep=3)
    assert "\n" not in str(caught.value)
    assert runs.snapshot(out) == before
