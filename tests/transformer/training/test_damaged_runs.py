"""Folders that cannot be used, and what a resumed run may not change: one line says why, and nothing is changed."""

import json
import math
import os
import signal
import sys

import numpy as np
import pytest

from minigrad.checkpoint import load_tensors, save_tensors

from tests.transformer import runs
from transformer.data import build_tokenizers
from transformer.training.checkpoints import load_run
from transformer.training.log import Log
from transformer.training.loop import TrainingError
from transformer.training.run_folder import RunError

LATEST = "checkpoints/00000006"
OPTIONS = {"steps": 6, "schedule": "constant", "keep": 3}


def refused(out, match, **changes):
    """Resuming raises RunError with one line, and the folder is as it was."""
    before = runs.snapshot(out)
    with pytest.raises(RunError, match=match) as caught:
        runs.run(out, resume=True, **{**OPTIONS, **changes})
    assert "\n" not in str(caught.value)
    assert str(out) in str(caught.value)
    assert runs.snapshot(out) == before


def truncate(path):
    path.write_bytes(path.read_bytes()[:-7])


def flip_a_byte(path):
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)


def edit(path, change):
    """Change the arrays of a file and keep the rest."""
    arrays, metadata = load_tensors(path)
    save_tensors(path, change(arrays), metadata)


def other_shape(arrays):
    name = next(iter(arrays))
    return arrays | {name: arrays[name][:1]}


def other_name(arrays):
    return {"foreign": arrays.pop(next(iter(arrays))), **arrays}


def empty_validation(path):
    progress = json.loads(path.read_bytes())["progress"]
    runs.edit_json(path, progress=progress | {"validation": {}})


def not_finite(arrays):
    next(iter(arrays.values())).flat[-1] = math.nan
    return arrays


MODEL, OPTIMIZER, RUN = (f"{LATEST}/{name}" for name in ("model.safetensors", "optimizer.safetensors", "run.json"))
DAMAGES = {
    "model truncated": (MODEL, truncate, "cannot be read: .*model.safetensors"),
    "byte of the weights flipped": (MODEL, flip_a_byte, "do not match their checksum"),
    "byte of run.json flipped": (RUN, lambda path: path.write_text(path.read_text().replace('"step": 6', '"step": 7')),
                                 "do not belong together"),
    "options of another version": (RUN, lambda path: runs.edit_json(path, training={"epoch": 1}),
                                   "unexpected keyword"),
    "an empty validation": (RUN, empty_validation, "cannot be read: .*missing 2 required"),
    "another format": (RUN, lambda path: runs.edit_json(path, format=99), "has format 99, this version reads format 3"),
    "no run.json": (RUN, lambda path: path.unlink(), "cannot be read: .*run.json"),
    "weights of another shape": (MODEL, lambda path: edit(path, other_shape), "cannot be used: .* shape"),
    "moments of another name": (OPTIMIZER, lambda path: edit(path, other_name),
                                "cannot be used: '' is not"),
    "a weight is not finite": (MODEL, lambda path: edit(path, not_finite), "the parameter .* holds a NaN"),
    "a moment is not finite": (OPTIMIZER, lambda path: edit(path, not_finite), "the optimizer's .* holds a NaN"),
    "pointer to a missing folder": ("latest", lambda path: path.write_text("00000099\n"), "00000099 is missing"),
    "pointer out of the folder": ("latest", lambda path: path.write_text("../..\n"), "not the name of a checkpoint"),
    "pointer is not text": ("latest", lambda path: path.write_bytes(b"\xff\xfe"), "not the name of a checkpoint"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(damage, out):
    name, do, match = DAMAGES[damage]
    do(out / name)
    refused(out, match)


ENDLESS = {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"),
           "link to itself": lambda path: path.symlink_to(path.name), "folder": lambda path: path.mkdir(),
           "gigabytes": lambda path: (path.touch(), os.truncate(path, 3 * 2**30)),
           "another file": lambda path: path.symlink_to(__file__)}


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has these files")
@pytest.mark.parametrize("what", ENDLESS)
@pytest.mark.parametrize("name", [MODEL, OPTIMIZER, RUN, "latest"])
def test_a_file_without_an_end_is_refused_at_once(name, what, out):
    """And nothing of another file is shown."""
    (out / name).unlink()
    ENDLESS[what](out / name)
    with pytest.raises(RunError) as caught:
        runs.run(out, resume=True, **OPTIONS)
    assert str(out / name).removesuffix("/run.json") in str(caught.value)
    assert len(str(caught.value)) < 4 * len(str(out)) + 400
    assert "import" not in str(caught.value)


def test_a_pointer_to_nothing_hides_no_missing_state(out):
    """Else the checkpoint would load as one of those whose state was pruned."""
    (out / LATEST / "optimizer.safetensors").unlink()
    (out / "latest").write_text("00000007\n")
    with pytest.raises(RunError, match=r"optimizer\.safetensors"):
        load_run(out, "00000006")


FORBIDDEN = {"batch_tokens": 32, "accumulate": 1, "learning_rate": 0.02, "warmup_steps": 5, "schedule": "inverse_sqrt",
             "label_smoothing": 0.0, "clip_norm": 0.0, "weight_decay": 0.1, "adam_beta2": 0.9, "seed": 2,
             "valid_metric": "bleu"}
NAMED = ", ".join(name for name in vars(runs.options()) if name in FORBIDDEN)
OTHER = "may not change the pairs and tokenizers that this run began with;"


@pytest.mark.parametrize(("changes", "match"), [
    (FORBIDDEN | {"model": {"dropout": 0.1, "norm": "post"}}, f"may not change dropout, norm, {NAMED};"),
    ({"train_pairs": [*runs.PAIRS[1:], runs.PAIRS[0]]}, OTHER),
    ({"valid_pairs": runs.VALID[:-1]}, OTHER),
    # Of the same size: the same words have other ids.
    ({"tokenizers": build_tokenizers("words", *zip(*runs.PAIRS[::3], strict=True), shared=True)}, OTHER),
], ids=["options", "training pairs", "validation pairs", "tokenizers"])
def test_what_may_not_change(changes, match, out):
    refused(out, match, **changes)


# ----------------------------------------------------------------- numbers that are not finite

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
