"""``train --profile``: some updates are measured, in all threads, and the training is the same."""

import json
import time
from collections import Counter

import numpy as np
import pytest

from minigrad.engine.watch import watchers

from tests.transformer import runs
from tests.transformer.commands import SMALL, call, refused
from transformer import Transformer
from transformer.training.checkpoints import load_run
from transformer.training.loop import fit
from transformer.training.profiling import MEASURED, WARM_UP


def test_updates_after_the_first_few_are_measured(tmp_path, monkeypatch):
    steps, measured = WARM_UP + MEASURED + 3, MEASURED
    monkeypatch.setattr("transformer.training.threads.SMALL", 0)
    monkeypatch.setattr("transformer.training.threads.SHARD_TOKENS", 1)
    loss = Transformer.loss  # a thread that waits leaves the other shard to another one
    monkeypatch.setattr(Transformer, "loss", lambda *given, **options: (time.sleep(0.01), loss(*given, **options))[1])
    trace = tmp_path / "trace.json"
    arguments = ["train", *SMALL, "--steps", steps, "--threads", 2, "--valid-every", WARM_UP + 1,
                 "--valid-sentences", 1, "--keep", 1]
    assert call(*arguments, "--out", tmp_path / "plain").exit_code == 0
    result = call(*arguments, "--out", tmp_path / "run", "--profile", trace)
    assert result.exit_code == 0, result.output
    assert f"profile of {measured} updates\n" in result.stderr
    events = Counter((event["name"], event["tid"]) for event in json.loads(trace.read_text(encoding="utf-8"))[
        "traceEvents"] if event["ph"] == "X")
    threads, workers = {thread for _, thread in events}, {thread for name, thread in events if name == "linear"}
    assert len(workers) == 2
    for name in ("update", "AdamW.step", "clip_grad_norm_"):
        assert sum(events[name, thread] for thread in threads) == measured
    assert not any(name in ("validation", "sampling", "encode") for name, _ in events), "it measures updates alone"
    for thread in workers:
        assert events["linear", thread] > events["encoder", thread] > 0
    expected, weights = (load_run(tmp_path / out, "latest")[1] for out in ("plain", "run"))
    assert all(np.array_equal(expected[name], weights[name]) for name in expected), "the training is the same"


@pytest.mark.parametrize("place", ["", "folder", "nowhere/trace.json"])
def test_a_trace_that_cannot_be_written_is_refused_at_once(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert "--profile" in refused("train", *SMALL, "--out", tmp_path / "run", "--profile", place)
    assert not (tmp_path / "run").exists()


def test_an_error_in_a_measured_update_leaves_nothing_on(tmp_path, monkeypatch):
    def fail(trainer):
        if trainer.progress.step == WARM_UP + 2:
            raise RuntimeError("stop")

    runs.after_update(monkeypatch, fail)
    with pytest.raises(RuntimeError, match="stop"):
        fit(runs.new_trainer(tmp_path / "run"), show_progress=False, profile=tmp_path / "trace.json")
    assert watchers() == ()
    assert (tmp_path / "trace.json").exists()
