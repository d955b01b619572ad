"""A damaged checkpoint costs no other: it is said which are intact, and a run goes on from any of them."""

import shutil

import pytest

from tests.transformer import runs
from transformer.training.checkpoints import Validation, check, load_run
from transformer.training.run_folder import checkpoint_names, pointed
from transformer.training.trainer import Trainer

KEPT = {"keep": 9}
NAMES = [f"{step:08d}" for step in (4, 8, 12, 14)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never stopped. Nobody changes it."""
    out = tmp_path_factory.mktemp("whole")
    runs.run(out, **KEPT)
    assert set(NAMES) <= set(checkpoint_names(out))
    return out


@pytest.fixture
def copy(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


def damage(out, *names):
    for name in names:
        with open(out / "checkpoints" / name / "model.safetensors", "r+b") as file:
            file.seek(-9, 2)
            file.write(b"X")


def test_the_latest_checkpoint_alone_has_the_moments(whole):
    assert [path.parent.name for path in whole.glob("checkpoints/*/optimizer.safetensors")] == ["00000014"]


@pytest.mark.parametrize(("name", "damaged"), [("00000004", ["00000014", "best"]), ("00000004", NAMES[1:]),
                                               ("00000012", ["00000014"]), ("00000012", [])])
def test_a_run_goes_on_from_an_older_checkpoint_with_a_new_optimizer(name, damaged, copy, monkeypatch, capsys):
    """Whose moments the latest alone has. The best checkpoint, a later one, stays while it is intact."""
    weights, began, make = runs.bits(load_run(copy, name)[1]), [], Trainer.groups

    def groups(trainer):
        began.append(runs.bits({key: value.numpy() for key, value in trainer.model.state_dict().items()}))
        return make(trainer)

    monkeypatch.setattr(Trainer, "groups", groups)
    damage(copy, *{pointed(copy, "best") if other == "best" else other for other in damaged})
    runs.run(copy, resume=name, **KEPT)
    assert began == [weights]
    assert "has no state of the optimizer" in capsys.readouterr().err
    assert load_run(copy, "latest")[0].progress.step == 14
    assert all(check(copy, other) is None for other in checkpoint_names(copy))


def test_going_back_moves_the_pointers_and_cuts_the_log_and_no_more(copy):
    best = pointed(copy, "best")
    names = checkpoint_names(copy)
    trainer = runs.new_trainer(copy, resume="00000008", **KEPT)
    assert (pointed(copy, "latest"), pointed(copy, "best")) == ("00000008", best)
    assert checkpoint_names(copy) == names, "later ones are there until the run saves"
    assert [int(row["step"]) for row in trainer.log.rows()] == [4, 8]


def test_in_place_of_a_lost_best_checkpoint_the_restored_one_is_validated_anew(copy, capsys):
    """It was not the best in its time, so that the validation which it holds is not its own."""
    trainer = runs.new_trainer(copy, resume="00000008", **KEPT)
    own, trainer.progress.best, trainer.latest = trainer.validate(), Validation(0.1, 0.99), None
    trainer.progress.improved = False
    trainer.save()
    shutil.rmtree(copy / "checkpoints" / pointed(copy, "best"))
    trainer = runs.new_trainer(copy, resume="00000008", **KEPT)
    assert pointed(copy, "best") == "00000008"
    assert trainer.progress.best == own
    assert trainer.progress.improved
    assert "00000008, validated anew, is the best now" in capsys.readouterr().err
