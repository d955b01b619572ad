"""A run that is stopped and goes on ends as one that was never stopped: the same bits, but for the time it took."""

import signal
import threading
from contextlib import contextmanager

import pytest

from tests.transformer import runs
from transformer.data.parallel_text import ParallelText
from transformer.training import signals
from transformer.training.checkpoints import NUMERICS, load_run
from transformer.training.log import Log
from transformer.training.run_folder import is_run
from transformer.training.trainer import Trainer


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a run that was never stopped leaves."""
    out = tmp_path_factory.mktemp("whole")
    runs.run(out)
    return runs.contents(out)


@contextmanager
def pressed_before():
    """As if Ctrl-C had been pressed before the first update."""
    request = signals.Request()
    request.number = signal.SIGINT
    yield request


@pytest.mark.parametrize("step", [1, 3, 4, 14])
def test_ctrl_c_and_resume_give_the_same_bits(step, whole, tmp_path):
    """In the middle and at the end of an epoch, before and at a validation, at the last update."""
    runs.interrupted(tmp_path, step)
    assert load_run(tmp_path, "latest")[0].progress.step == step
    runs.run(tmp_path, resume=True)
    assert runs.contents(tmp_path) == whole


@pytest.mark.parametrize("step", [1, 4, 9])
def test_data_that_does_not_fit_gives_the_same_bits(step, tmp_path, monkeypatch):
    """Its token ids lie in a file."""
    for name, texts in zip(("source", "target"), zip(*runs.PAIRS, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    loaded = runs.contents(runs.run(tmp_path / "loaded").out)
    monkeypatch.setattr("transformer.data.examples.HELD", 0)
    changes = {"train_pairs": ParallelText(tmp_path / "source", tmp_path / "target")}
    out = runs.interrupted(tmp_path / "read", step, **changes)
    runs.run(out, resume=True, **changes)
    assert runs.contents(out) == loaded


@pytest.mark.parametrize("step", [8, 9])
def test_the_decay_that_the_clock_began_goes_on(step, tmp_path, monkeypatch):
    """Before and at its beginning; on a clock that advances alike in both runs."""
    changes = {"steps": None, "minutes": 10.5, "schedule": "wsd", "valid_every": 100}  # an update takes a minute
    update, now = Trainer.update, [0.0]

    def minute(trainer, group):
        update(trainer, group)
        now[0] += 60

    monkeypatch.setattr(Trainer, "update", minute)
    monkeypatch.setattr("transformer.training.loop.time.perf_counter", lambda: now[0])
    result = runs.run(tmp_path / "whole", **changes)
    assert (result.progress.decay_from, result.progress.end, result.progress.step) == (9, 10, 10)
    runs.interrupted(tmp_path / "stopped", step, **changes)
    runs.run(tmp_path / "stopped", resume=True, **changes)
    assert runs.contents(tmp_path / "stopped") == runs.contents(tmp_path / "whole")
    longer = runs.run(tmp_path / "whole", resume=True, **changes | {"minutes": 20.0})
    assert longer.progress.end > 10, "the end of a longer run is decided anew"
    rates = [float(row["learning_rate"]) for row in Log(tmp_path / "stopped" / "log.csv").rows()]
    shorter = runs.run(tmp_path / "stopped", resume=True, **changes | {"minutes": 5.0})
    assert (shorter.progress.step, shorter.progress.end) == (10, 10), "and of a shorter one, at once"
    assert rates[-1] == pytest.approx(runs.options().learning_rate / 2)


def test_a_run_of_other_numerics_goes_on_and_says_so_once(whole, tmp_path, monkeypatch, capsys):
    runs.interrupted(tmp_path, 4)
    with monkeypatch.context() as patch:
        patch.setattr("transformer.training.trainer.NUMERICS", NUMERICS + 1)
        runs.run(tmp_path, resume=True)
    assert capsys.readouterr().err.count(f"(numerics {NUMERICS}, here {NUMERICS + 1})") == 1
    assert runs.contents(tmp_path) == whole


def test_ctrl_c_right_after_resuming_changes_nothing(whole, tmp_path, monkeypatch):
    """The checkpoint to be written is the one that was just read: it is not replaced, which a kill could interrupt."""
    runs.interrupted(tmp_path, 4)
    before = runs.snapshot(tmp_path)
    written = [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("checkpoints/*/*"))]
    with monkeypatch.context() as patch:
        patch.setattr("transformer.training.loop.stop_request", pressed_before)
        with pytest.raises(KeyboardInterrupt):
            runs.run(tmp_path, resume=True)
    assert runs.snapshot(tmp_path) == before
    assert [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("checkpoints/*/*"))] == written
    runs.run(tmp_path, resume=True)
    assert runs.contents(tmp_path) == whole


def test_ctrl_c_before_the_first_update_leaves_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.training.loop.stop_request", pressed_before)
    with pytest.raises(KeyboardInterrupt):
        runs.run(tmp_path)
    assert not is_run(tmp_path)


def test_training_in_a_thread_leaves_the_signals_alone(tmp_path):
    results = []
    thread = threading.Thread(target=lambda: results.append(runs.run(tmp_path, steps=1)))
    thread.start()
    thread.join()
    assert results[0].progress.step == 1
