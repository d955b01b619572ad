"""Data prepared ahead: the next update's while a GPU computes this one; and what a training step waits for."""

import pytest

from tests.transformer import runs
from transformer.training.loop import REPORT_EVERY, fit
from transformer.training.trainer import Trainer


def test_the_next_group_is_prepared_before_anybody_waits(stand_in, tmp_path, monkeypatch):
    order, groups, look = [], Trainer.groups, Trainer.read_loss

    def preparing(trainer):
        for number, group in enumerate(groups(trainer), start=1):
            order.append(("prepared", number))
            yield group

    monkeypatch.setattr(Trainer, "groups", preparing)
    monkeypatch.setattr(Trainer, "read_loss", lambda trainer: (order.append("look"), look(trainer)))
    runs.after_update(monkeypatch, lambda trainer: order.append(("update", trainer.progress.step)))
    fit(runs.new_trainer(tmp_path, device="cuda", steps=REPORT_EVERY + 2, valid_every=100), show_progress=False)
    assert order[:5] == [("prepared", 1), ("update", 1), ("prepared", 2), ("update", 2), ("prepared", 3)]
    place = order.index("look")
    assert order[place - 2:place] == [("update", REPORT_EVERY), ("prepared", REPORT_EVERY + 1)]


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
