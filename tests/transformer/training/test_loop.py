"""Training: when a run ends, which weights it leaves, what it refuses; alike on every device and for every seed."""

import math

import numpy as np
import pytest

import minigrad

from tests.transformer import runs
from transformer.training.checkpoints import load_run
from transformer.training.loop import TrainingError, fit
from transformer.training.progress import Validation
from transformer.training.run_folder import RunError, numbered, pointed
from transformer.training.trainer import Trainer
from transformer.translator import Translator


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


def test_curves_are_drawn_beside_the_log(tmp_path):
    trainer = runs.new_trainer(tmp_path, steps=2, valid_every=1)
    fit(trainer, show_progress=False)
    path = trainer.log.draw("exact_match")
    assert path == tmp_path / "history.png"
    assert path.read_bytes().startswith(b"\x89PNG")


def validating(monkeypatch, *metrics):
    """Let the validations of a run find these metrics, one after the other."""
    found = iter(metrics)
    monkeypatch.setattr(Trainer, "validate", lambda trainer: Validation(1.0, next(found)))


def test_an_equal_validation_is_not_better(tmp_path, monkeypatch):
    validating(monkeypatch, 0.1, 0.3, 0.2, 0.4, 0.4, 0.3)
    result = runs.run(tmp_path, steps=6, valid_every=1)
    assert (result.progress.best.metric, result.kept) == (0.4, "00000004")
    assert (pointed(tmp_path, "best"), pointed(tmp_path, "latest")) == ("00000004", "00000006")


def test_the_same_metric_with_a_lower_loss_is_better():
    assert Validation(1.0, 0.5).better_than(Validation(2.0, 0.5))
    assert not Validation(2.0, 0.5).better_than(Validation(2.0, 0.5))
    assert not Validation(0.1, 0.4).better_than(Validation(2.0, 0.5))
    assert Validation(1.0, 0.2).better_than(Validation(2.0, 3.0), "bleu"), "so little BLEU is chance"
    assert Validation(2.0, 30.0).better_than(Validation(1.0, 3.0), "bleu")
    assert not Validation(math.nan, 0.5).better_than(Validation(2.0, 0.5))


@pytest.mark.parametrize("better", [True, False])
def test_averaging_the_last_checkpoints(better, tmp_path, monkeypatch):
    """The mean of the last three, if it validates better than all before it; the trained weights stay as they are."""
    validating(monkeypatch, 0.1, 0.2, 0.5, 0.4, 0.6 if better else 0.3)
    result = runs.run(tmp_path, steps=4, valid_every=1, average=3)
    states = [runs.parameters(tmp_path, name) for name in ("00000002", "00000003", "00000004")]
    assert numbered(tmp_path) == ["00000002", "00000003", "00000004"]
    name = "00000004-average-3" if better else "00000003"
    assert pointed(tmp_path, "best") == name
    best = runs.parameters(tmp_path, "best")
    for key, array in best.items():
        expected = np.mean(np.array([s[key] for s in states], np.float64), axis=0) if better else states[1][key]
        np.testing.assert_allclose(array, expected, rtol=1e-6, atol=1e-9)
    assert result.progress.best.metric == (0.6 if better else 0.5)
    assert load_run(tmp_path, name)[0].progress.best.metric == result.progress.best.metric
    assert any((states[2][key] != array).any() for key, array in best.items())
    translator = Translator.load(tmp_path)
    assert runs.bits({k: v.numpy() for k, v in translator.model.state_dict().items()}) == runs.bits(best)


def test_a_longer_run_has_to_beat_the_average(tmp_path, monkeypatch):
    validating(monkeypatch, 0.1, 0.2, 0.9, 0.5, 0.4)
    runs.run(tmp_path, steps=2, valid_every=1, average=2, schedule="constant")
    result = runs.run(tmp_path, resume=True, steps=3, valid_every=1, average=2, schedule="constant")
    assert pointed(tmp_path, "best") == "00000002-average-2"
    assert result.progress.best.metric == 0.9


def test_a_loss_that_is_not_finite(tmp_path, monkeypatch):
    """The checkpoint before it is as it was."""
    saved = {}

    def break_the_model(trainer):
        if trainer.progress.step == 5:
            saved.update(runs.snapshot(tmp_path))
            parameter = next(trainer.model.parameters())
            parameter.copy_(np.full(parameter.shape, np.nan))

    runs.after_update(monkeypatch, break_the_model)
    message = r"became nan by step 8; begin anew with a lower .* last checkpoint, 00000004, is intact"
    with pytest.raises(TrainingError, match=message) as caught:
        runs.run(tmp_path)
    assert "\n" not in str(caught.value)
    assert runs.snapshot(tmp_path) == saved
    assert np.isfinite([array.sum() for array in runs.parameters(tmp_path).values()]).all()


TOO_LONG = [(" ".join("abcdefghijabcdef"), "a"), ("a", " ".join("abcdefghijabcdef"))]  # 16 and end-of-sentence


@pytest.mark.parametrize("side", ["training", "validation"])
def test_a_pair_that_is_too_long_is_named(side, tmp_path):
    name, pairs = {"training": ("train_pairs", runs.PAIRS), "validation": ("valid_pairs", runs.VALID)}[side]
    for pair in TOO_LONG:
        message = rf"^{side} pair 3 has more tokens than the model's 16 positions .too long: 2"
        with pytest.raises(RunError, match=message) as caught:
            runs.run(tmp_path / "out", **{name: [*pairs[:2], pair, *pairs[2:], pair]})
        assert "\n" not in str(caught.value)
    with pytest.raises(RunError, match="at least one training pair and one validation pair"):
        runs.run(tmp_path / "out", **{name: []})
    assert not (tmp_path / "out").exists()


def test_validation_leaves_modes_and_random_state_as_they_were(tmp_path):
    trainer = runs.new_trainer(tmp_path)
    trainer.model.train()
    trainer.model.encoder.eval()
    modes, state = [m.training for m in trainer.model.modules()], minigrad.random.get_state()
    validation = trainer.validate()
    assert [m.training for m in trainer.model.modules()] == modes
    assert minigrad.random.get_state() == state
    evaluation = trainer.translator().evaluate(*zip(*runs.VALID, strict=True))
    assert validation.loss == pytest.approx(evaluation["loss"], rel=1e-6)


def test_a_seed_decides_every_bit_and_another_seed_others(tmp_path):
    for name, seed in (("one", 1), ("again", 1), ("two", 2)):
        runs.run(tmp_path / name, steps=4, seed=seed, valid_sentences=1)
    assert runs.contents(tmp_path / "one") == runs.contents(tmp_path / "again")
    one, two = (runs.parameters(tmp_path / name) for name in ("one", "two"))
    assert all((one[name] != two[name]).any() for name in one)
