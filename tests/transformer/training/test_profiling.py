"""``train --profile``: some updates are measured, in all threads, and the training is the same."""

import json
import time
from collections import Counter

import pytest

from minigrad.engine.watch import watchers

from tests.transformer import runs
from transformer import Transformer
from transformer.training.loop import MEASURED, WARM_UP, fit


def test_updates_after_the_first_few_are_measured(tmp_path, monkeypatch, capsys):
    options, loss = {"steps": WARM_UP + MEASURED + 3, "threads": 2, "valid_every": WARM_UP + 1}, Transformer.loss
    runs.run(tmp_path / "plain", shards=2, **options)
    # A thread that waits leaves the other shard to another one.
    monkeypatch.setattr(Transformer, "loss", lambda *given, **named: (time.sleep(0.01), loss(*given, **named))[1])
    trainer = runs.new_trainer(tmp_path / "run", shards=2, **options)
    trainer.gradients.threads = 2  # however small the model
    fit(trainer, show_progress=False, profile=tmp_path / "trace.json")
    assert f"profile of {MEASURED} updates\n" in capsys.readouterr().err
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = [(event["name"], event["tid"]) for event in trace["traceEvents"] if event["ph"] == "X"]
    counts = Counter(name for name, _ in events)
    assert {counts[name] for name in ("update", "AdamW.step", "clip_grad_norm_")} == {MEASURED}
    assert not {"validation", "sampling", "encode"} & counts.keys(), "it measures updates alone"
    assert len({thread for name, thread in events if name == "linear"}) == 2
    assert counts["linear"] > counts["encoder"] > 0
    assert runs.bits(runs.parameters(tmp_path / "run")) == runs.bits(runs.parameters(tmp_path / "plain"))


def test_an_error_in_a_measured_update_leaves_nothing_on(tmp_path, monkeypatch):
    def fail(trainer):
        if trainer.progress.step == WARM_UP + 2:
            raise RuntimeError("stop")

    runs.after_update(monkeypatch, fail)
    with pytest.raises(RuntimeError, match="stop"):
        fit(runs.new_trainer(tmp_path / "run"), show_progress=False, profile=tmp_path / "trace.json")
    assert watchers() == ()
    assert (tmp_path / "trace.json").exists()
