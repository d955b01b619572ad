"""Data prepared ahead: the next update's while a GPU computes this one; and what a training step waits for."""

import pytest

from tests.transformer import runs
from transformer.training.loop import REPORT_EVERY, fit
from transformer.training.trainer import Trainer


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
