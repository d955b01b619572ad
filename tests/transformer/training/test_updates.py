"""One update: the gradients of all its batches together, their losses in the log, and its learning rate."""

import json
import math
import time
from collections import Counter

import numpy as np
import pytest

from tests.transformer import runs
from tests.transformer.tiny import assert_same, gradients
from transformer import Transformer
from transformer.data.batches import collate
from transformer.training.loop import MEASURED, REPORT_EVERY, WARM_UP, fit
from transformer.training.trainer import Group, Trainer


def float64_trainer(out, **changes):
    """Without dropout; an update leaves the gradients, and changes nothing."""
    options = {"clip_norm": 0.0, "label_smoothing": 0.2, **changes}
    trainer = runs.new_trainer(out, {"dropout": 0.0}, **options)
    trainer.model.to(dtype=np.float64)
    trainer.optimizer.step = lambda: None
    return trainer


def test_two_batches_have_the_gradients_of_the_joined_batch(tmp_path):
    """Divided by the real target tokens of both: batches of 3 and 5 sentences, of unequal lengths."""
    trainer = float64_trainer(tmp_path)
    first, second = [0, 1, 2], [3, 4, 5, 6, 7]
    batches = [collate(trainer.examples, indices) for indices in (first, second)]
    divided = [trainer.gradients.divide(batch.source, batch.target[:, 1:]) for batch in batches]
    trainer.update(Group(divided, sum(batch.num_target_tokens for batch in batches)))
    apart = gradients(trainer.model)
    assert trainer.progress.tokens == sum(len(runs.PAIRS[i][1].split()) + 1 for i in range(8))

    joined = collate(trainer.examples, first + second)
    trainer.model.zero_grad()
    trainer.model.loss(joined.source, joined.target[:, 1:], label_smoothing=0.2).backward()
    assert_same(apart, gradients(trainer.model), tolerance=1e-12)


def test_the_losses_of_the_log_are_means_over_tokens(tmp_path):
    """Of all updates since the line before: checked against the model's own loss, before each update."""
    trainer = runs.new_trainer(tmp_path, {"dropout": 0.0}, label_smoothing=0.0, steps=4, valid_every=2)
    sums, tokens, update = [], [], trainer.update

    def recording(group):
        sums.append(sum(float(trainer.model.loss(*shard, reduction="sum")) for [shard] in group.batches))
        tokens.append(group.tokens)
        update(group)

    trainer.update = recording
    fit(trainer, show_progress=False)
    for row, first in zip(trainer.log.rows(), (0, 2), strict=True):
        assert int(row["tokens"]) == sum(tokens[:first + 2])
        objective = sum(sums[first:first + 2]) / sum(tokens[first:first + 2])
        assert float(row["objective"]) == pytest.approx(objective, rel=1e-5)
    assert float(row["train_loss"]) == pytest.approx(
        trainer.translator.loss(runs.PAIRS[2::5]), rel=1e-5), "the same loss as that of validation: of a sample"


SCHEDULES = {  # of update n = 1, 2, ..., 12 after a warm-up of 4
    "constant": lambda n: min(1, n / 4),
    "wsd": lambda n: min(1, n / 4, (13 - n) / 3),  # ten updates are four fifths of 12; two remain
    "inverse_sqrt": lambda n: n / 4 if n < 4 else math.sqrt(4 / n),
    "cosine": lambda n: n / 4 if n < 4 else (1 + math.cos(math.pi * (n - 4) / 9)) / 2,
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_learning_rate_of_each_update(schedule, tmp_path):
    """It begins above 0, has its peak at the warm-up's end, and every update, the last too, has a rate above 0."""
    trainer = runs.new_trainer(tmp_path, steps=12, schedule=schedule, learning_rate=0.02, accumulate=1, valid_every=99)
    used = []
    trainer.optimizer.step = lambda: used.append(trainer.optimizer.param_groups[0]["lr"])
    fit(trainer, show_progress=False)
    np.testing.assert_allclose(used, [0.02 * SCHEDULES[schedule](n) for n in range(1, 13)], rtol=1e-12)
    assert max(used) == used[3] == 0.02
    assert min(used) > 0


@pytest.mark.parametrize("changes", [{"warmup_steps": 0}, {"warmup_steps": 50}, {"steps": 1}], ids=str)
def test_a_schedule_at_its_edges(changes, tmp_path):
    """No warm-up, one that is longer than the run, a run of one update: every rate is above 0 and at most the peak."""
    trainer = runs.new_trainer(tmp_path, **{"schedule": "cosine", "steps": 6, **changes})
    assert all(0 < trainer.rate(step) <= 1 for step in range(trainer.options.steps))


# ----------------------------------------------------------------- what surrounds it


def test_the_next_group_is_prepared_before_anybody_waits(stand_in, tmp_path, monkeypatch):
    order, groups, look = [], Trainer.groups, Trainer.read_loss
    monkeypatch.setattr(Trainer, "groups",
                        lambda trainer: (order.append("prepared") or group for group in groups(trainer)))
    monkeypatch.setattr(Trainer, "read_loss", lambda trainer: (order.append("look"), look(trainer)))
    runs.after_update(monkeypatch, lambda trainer: order.append("update"))
    fit(runs.new_trainer(tmp_path, device="cuda", steps=REPORT_EVERY + 2, valid_every=100), show_progress=False)
    steps = ["update", "prepared"]
    assert order[:2 * REPORT_EVERY + 4] == ["prepared", *steps * REPORT_EVERY, "look", *steps]


class Ended(Exception):
    """The validation is next: what it waits for is no part of an update."""


def end(trainer):
    raise Ended


@pytest.mark.parametrize("changes", [{}, {"clip_norm": 0.0, "accumulate": 3}, {"dropout": 0.2}], ids=str)
def test_a_gpu_is_waited_for_where_the_loss_is_looked_at_alone(changes, stand_in, tmp_path, monkeypatch):
    """12 updates: at the 10th alone; the validation that ends the run is not counted here."""
    update, sent = Trainer.update, []

    def counting(trainer, group):
        uploads = stand_in.uploads.copy()
        update(trainer, group)
        sent.append(stand_in.uploads - uploads)

    monkeypatch.setattr(Trainer, "update", counting)
    monkeypatch.setattr(Trainer, "validate_and_save", end)
    options = {"steps": 12, "valid_every": 12, "accumulate": 1, "batch_tokens": 200, "dropout": 0.0, **changes}
    dropout = options.pop("dropout")
    trainer = runs.new_trainer(tmp_path, {"dropout": dropout}, device="cuda", **options)
    stand_in.clear()
    with pytest.raises(Ended):
        fit(trainer, show_progress=False)
    assert len(sent) == 12
    assert dropout or not any(sent[1:]), "what an update needs was sent before it"
    assert sum(stand_in.synchronizations.values()) == 1, stand_in.synchronizations


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
