"""Training: when a run ends, which weights it leaves, what it refuses; alike on every device and for every seed."""

import io
import math
import os
import sys

import numpy as np
import pytest

from minigrad.engine.watch import watchers

from tests.transformer import runs
from transformer.training.checkpoints import Validation, load_run
from transformer.training.loop import WARM_UP, fit
from transformer.training.messages import Messages
from transformer.training.run_folder import RunError, numbered, pointed
from transformer.training.trainer import Trainer


def test_the_length_in_epochs_counts_updates(tmp_path):
    trainer = runs.new_trainer(tmp_path, steps=None, epochs=3)
    batches = [len(trainer.plan(epoch)) for epoch in range(3)]
    assert trainer.total_steps == sum(-(-count // 2) for count in batches)
    fit(trainer, show_progress=False)
    assert (trainer.progress.step, trainer.progress.epoch, trainer.progress.batch) == (trainer.total_steps, 3, 0)
    assert trainer.progress.tokens == 3 * sum(len(target.split()) + 1 for _, target in runs.PAIRS)
    assert runs.new_trainer(tmp_path, steps=4, epochs=3).total_steps == 4


def test_a_limit_in_minutes(tmp_path):
    """It ends after an update, and is validated and saved."""
    runs.run(tmp_path, steps=None, minutes=1e-9, schedule="constant", valid_every=1000)
    assert pointed(tmp_path, "latest") == "00000001"


def test_progress_in_a_file_is_a_line_now_and_then(tmp_path, monkeypatch, capsys):
    """A line at the beginning, one at the end, and one for each validation: the others are 30 seconds apart."""
    fit(runs.new_trainer(tmp_path, steps=10, valid_every=5))
    printed = capsys.readouterr()
    assert printed.err.count("validation loss") == 2
    assert "\r" not in printed.err
    assert printed.err.count("step/s") == 2
    assert printed.out == ""


@pytest.mark.parametrize(("one", "other", "metric", "better"), [
    ((1.0, 0.5), (2.0, 0.5), "exact_match", True),
    ((2.0, 0.5), (2.0, 0.5), "exact_match", False),
    ((0.1, 0.4), (2.0, 0.5), "exact_match", False),
    ((math.nan, 0.5), (2.0, 0.5), "exact_match", False),
    ((1.0, 0.2), (2.0, 3.0), "bleu", True),  # so little BLEU is chance
    ((2.0, 30.0), (1.0, 3.0), "bleu", True),
])
def test_the_same_metric_with_a_lower_loss_is_better(one, other, metric, better):
    assert Validation(*one).better_than(Validation(*other), metric) is better


@pytest.mark.parametrize(("found", "name", "metric"), [(0.6, "00000004-average-3", 0.6), (0.3, "00000003", 0.5)])
def test_averaging_the_last_checkpoints(found, name, metric, tmp_path, monkeypatch):
    """The mean of the last three, if it validates better than all before it; a longer run has to beat the best."""
    metrics = iter([0.1, 0.2, 0.5, 0.4, found, 0.5])
    monkeypatch.setattr(Trainer, "validate", lambda trainer: Validation(1.0, next(metrics)))
    result = runs.run(tmp_path, steps=4, valid_every=1, average=3, schedule="constant")
    states = [runs.parameters(tmp_path, number) for number in numbered(tmp_path)]
    assert numbered(tmp_path) == ["00000002", "00000003", "00000004"]
    assert (pointed(tmp_path, "best"), result.kept, result.best.metric) == (name, name, metric)
    assert load_run(tmp_path, name)[0].progress.validation == result.best
    for key, array in runs.parameters(tmp_path, "best").items():
        mean = np.mean([state[key] for state in states], axis=0, dtype=np.float64)
        np.testing.assert_allclose(array, mean if "average" in name else states[1][key], rtol=1e-6, atol=1e-9)
    # What has no effect on earlier updates may change.
    longer = runs.run(tmp_path, resume=True, steps=5, epochs=9, minutes=5.0, valid_every=5, valid_first=5,
                      valid_sentences=2, keep=2, threads=2, shards=1, schedule="constant")
    assert (longer.kept, longer.best) == (name, result.best), "an equal one is not better"


TOO_LONG = [(" ".join("abcdefghijabcdef"), "a"), ("a", " ".join("abcdefghijabcdef"))]  # 16 and end-of-sentence


@pytest.mark.parametrize(("side", "name"), [("training", "train_pairs"), ("validation", "valid_pairs")])
def test_a_pair_that_is_too_long_is_named(side, name, tmp_path):
    for pair in TOO_LONG:
        with pytest.raises(RunError, match=rf"^{side} pair 3 has more tokens than .* 16 positions .too long: 2"):
            runs.run(tmp_path / "out", **{name: [*runs.VALID[:2], pair, *runs.VALID, pair]})
    with pytest.raises(RunError, match="at least one training pair and one validation pair"):
        runs.run(tmp_path / "out", **{name: []})


def test_a_seed_decides_every_bit_and_another_seed_others(tmp_path):
    for name, seed in (("one", 1), ("again", 1), ("two", 2)):
        runs.run(tmp_path / name, steps=4, seed=seed, valid_sentences=1)
    assert runs.contents(tmp_path / "one") == runs.contents(tmp_path / "again")
    one, two = (runs.parameters(tmp_path / name) for name in ("one", "two"))
    assert all((one[name] != two[name]).any() for name in one)


# ----------------------------------------------------------------- streams that cannot be written to


class Broken(io.StringIO):
    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize(("stream", "show"), [(None, False), (Broken(), True)])
def test_a_training_goes_on(stream, show, tmp_path, monkeypatch):
    trainer = runs.new_trainer(tmp_path, steps=10, valid_every=5)
    monkeypatch.setattr(sys, "stderr", stream)
    fit(trainer, show_progress=show, profile=tmp_path / "trace.json")
    assert trainer.progress.step == 10


def test_an_error_in_a_measured_update_leaves_no_profile_on(tmp_path, monkeypatch):
    def fail(trainer):
        if trainer.progress.step == WARM_UP + 2:
            raise RuntimeError("stop")

    runs.after_update(monkeypatch, fail)
    with pytest.raises(RuntimeError, match="stop"):
        fit(runs.new_trainer(tmp_path / "run"), show_progress=False, profile=tmp_path / "trace.json")
    assert watchers() == ()
    assert (tmp_path / "trace.json").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a full disk of Linux")
def test_what_a_full_disk_did_not_take_does_not_fail_later():
    with open("/dev/full", "w") as stream:
        messages = Messages(stream)
        messages.say("one")
        assert messages.stream is not stream
        stream.flush()
    messages.say("two")
    assert not messages.isatty()
