"""Signals that stop a training: it saves, and says which signal it was."""

import pkgutil
import signal
import time
import weakref

import pytest

from tests.transformer import runs
from transformer.training import signals
from transformer.training.checkpoints import load_run
from transformer.training.run_folder import pointed
from transformer.training.signals import STOPPING, Stopped, stop_request


@pytest.mark.parametrize("number", STOPPING)
def test_each_of_them_saves(number, tmp_path, monkeypatch):
    before = signal.getsignal(number)
    runs.after_update(monkeypatch, lambda trainer: trainer.progress.step == 3 and signal.raise_signal(number))
    with pytest.raises(Stopped) as caught:
        runs.run(tmp_path)
    assert caught.value.number == number
    assert load_run(tmp_path, "latest")[0].progress.step == 3
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("moment", "saved"), [
    ("loop.keep_freed_memory", None),
    ("trainer.Trainer.validate", "00000004"),
    ("trainer.Trainer.load_best", "00000014"),
])
def test_whenever_one_comes_nothing_is_lost(moment, saved, tmp_path, monkeypatch):
    """In the set-up, in a validation, and after the last update."""
    place = f"transformer.training.{moment}"
    original = pkgutil.resolve_name(place)

    def with_signal(*arguments, **options):
        signal.raise_signal(signal.SIGTERM)
        return original(*arguments, **options)

    monkeypatch.setattr(place, with_signal)
    with pytest.raises(Stopped):
        runs.run(tmp_path / "run")
    assert pointed(tmp_path / "run", "latest") == saved
    assert (tmp_path / "run").exists() == (saved is not None)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_that_python_drops_is_heeded(tmp_path, monkeypatch):
    """It comes in the callback of a weak reference, where nothing can be raised."""
    def with_signal():
        part = signals.Stopped(signal.SIGINT)
        reference = weakref.ref(part, lambda _: signal.raise_signal(signal.SIGTERM))
        del part
        assert reference() is None

    monkeypatch.setattr("transformer.training.loop.keep_freed_memory", with_signal)
    with pytest.raises(Stopped) as caught:
        runs.run(tmp_path)
    assert caught.value.number == signal.SIGTERM
    assert pointed(tmp_path, "latest") is None  # before the first update


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None])
def test_one_that_is_ignored_or_has_a_handler_of_the_program_stays_so(handler, tmp_path, monkeypatch):
    before = signal.signal(signal.SIGTERM, handler)
    try:
        runs.after_update(monkeypatch, lambda trainer: signal.raise_signal(signal.SIGTERM))
        assert runs.run(tmp_path, steps=2).progress.step == 2
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_request_is_heeded_at_the_end_of_the_block():
    with pytest.raises(Stopped), stop_request():
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(("later", "number"), [(0, signal.SIGINT), (signals.TWICE + 1, signal.SIGTERM)])
def test_one_signal_may_come_twice_and_a_second_one_interrupts(later, number, monkeypatch):
    """As from `timeout`, which sends SIGTERM to a process and to its group."""
    now = [0.0]

    def send():
        with stop_request():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
            now[0] = later
            signal.raise_signal(number)
            pytest.fail("it did not interrupt")

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with pytest.raises(Stopped) as caught:
        send()
    assert caught.value.number == number
