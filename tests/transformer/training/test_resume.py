"""A run that is stopped and goes on ends as one that was never stopped: the same bits, but for the time it took."""

import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import minigrad

from tests.transformer import runs
from transformer.data.parallel_text import ParallelText
from transformer.training import signals
from transformer.training.checkpoints import NUMERICS, load_run
from transformer.training.log import Log
from transformer.training.run_folder import is_run
from transformer.training.trainer import Trainer

ROOT = Path(__file__).parents[3]


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


def test_a_second_ctrl_c_interrupts_at_once(tmp_path, monkeypatch):
    def press(trainer):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the second one did not interrupt")

    handler = signal.getsignal(signal.SIGINT)
    runs.after_update(monkeypatch, press)
    with pytest.raises(KeyboardInterrupt):
        runs.run(tmp_path)
    assert not is_run(tmp_path)
    assert signal.getsignal(signal.SIGINT) is handler


def test_training_in_a_thread_leaves_the_signals_alone(tmp_path):
    results = []
    thread = threading.Thread(target=lambda: results.append(runs.run(tmp_path, steps=1)))
    thread.start()
    thread.join()
    assert results[0].progress.step == 1


def test_each_step_draws_the_dropout_it_would_have_drawn(tmp_path, monkeypatch):
    """Keys are (seed, step, call): after a resume they go on with the step, not from the start."""
    states = []
    runs.after_update(monkeypatch, lambda trainer: states.append(minigrad.random.get_state()))
    runs.interrupted(tmp_path, 3, steps=6)
    runs.run(tmp_path, resume=True, steps=6)
    calls = states[0]["call"]
    assert calls > 0, "two batches in every update, so as many calls"
    assert [(state["seed"], state["step"], state["call"]) for state in states] == [(1, n, calls) for n in range(6)]


CHILD = """
import sys
from pathlib import Path
import pytest
from tests.transformer import runs
from transformer.training.log import Log
from transformer.training.run_folder import is_run
from transformer.training.trainer import Trainer

with pytest.MonkeyPatch.context() as patch:
    runs.after_update(patch, lambda trainer: print(trainer.progress.step, flush=True))
    out = Path(sys.argv[1])
    runs.run(out, resume=is_run(out), **eval(sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_kill_9_at_random_moments(kills, tmp_path):
    """A checkpoint at every step, so that most kills come while one is written."""
    changes = {"valid_every": 1, "valid_sentences": 1}
    runs.run(tmp_path / "whole", **changes)
    out = tmp_path / "killed"
    for delay in np.random.default_rng(5).uniform(0, 0.25, size=kills):
        with subprocess.Popen([sys.executable, "-c", CHILD, str(out), repr(changes)], cwd=ROOT, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            process.stdout.readline()
            time.sleep(delay)
            process.kill()
        if is_run(out):
            steps = [load_run(out, which)[0].progress.step for which in ("latest", "best")]
            assert steps[0] >= steps[1]
    runs.run(out, resume=is_run(out), **changes)
    found = runs.contents(out)
    assert found == runs.contents(tmp_path / "whole")
    names = {path.name for path in (out / "checkpoints").iterdir()}
    assert names == {*found["numbered"], found["best"]}, "what the kills left behind is gone"
