"""A run that is stopped and goes on ends as one that was never stopped: the same bits, but for the time it took."""

import os
import shutil
import signal
from contextlib import contextmanager

import pytest

from tests.transformer import runs
from tests.transformer.shortage import too_much
from tests.transformer.training.test_checkpoints import Killed
from tests.transformer.training.test_damaged_runs import flip_a_byte
from transformer.data.parallel_text import ParallelText
from transformer.training.checkpoints import NUMERICS, check, load_run
from transformer.training.loop import fit
from transformer.training.run_folder import checkpoint_names, is_run, numbered, pointed
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
    yield [signal.SIGINT]


def threads(monkeypatch, folder, request):
    """A batch is divided over two, however small the model."""
    monkeypatch.setattr("transformer.training.threads.SMALL", 0)
    monkeypatch.setattr("transformer.training.threads.SHARD_TOKENS", 1)
    return {"threads": 2}


def text_in_a_file(monkeypatch, folder, request):
    for name, texts in zip(("source", "target"), zip(*runs.PAIRS, strict=True), strict=True):
        (folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return {"train_pairs": ParallelText(folder / "source", folder / "target")}


def gpu(monkeypatch, folder, request):
    """Where the next batches are prepared ahead; those that are not used leave no trace."""
    request.getfixturevalue("stand_in")
    return {"device": "cuda"}


@pytest.mark.parametrize(("way", "step"), [(None, 1), (None, 3), (None, 4), (None, 14), (threads, 6), (gpu, 3),
                                           (gpu, 5), (text_in_a_file, 1), (text_in_a_file, 9)])
def test_ctrl_c_and_resume_give_the_same_bits(way, step, whole, tmp_path, monkeypatch, request):
    """In the middle and at the end of an epoch, before and at a validation, at the last update."""
    changes = way(monkeypatch, tmp_path, request) if way else {}
    if way in (threads, gpu):
        runs.run(tmp_path / "whole", **changes)
        in_one_go = runs.contents(tmp_path / "whole")
        assert in_one_go["latest model"] != whole["latest model"] or way is gpu
        whole = in_one_go
    out = runs.interrupted(tmp_path / "run", step, **changes)
    progress = load_run(out, "latest")[0].progress
    assert (progress.step, progress.epoch, progress.batch) == (step, step // 3, 2 * (step % 3))
    runs.run(out, resume=True, **changes)
    assert runs.contents(out) == whole


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
    shorter = runs.run(tmp_path / "stopped", resume=True, **changes | {"minutes": 5.0})
    assert (shorter.progress.step, shorter.progress.end) == (10, 10), "and of a shorter one, at once"


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
    with monkeypatch.context() as patch:
        patch.setattr("transformer.training.loop.stop_request", pressed_before)
        patch.setattr("transformer.training.trainer.save_checkpoint", None)
        with pytest.raises(KeyboardInterrupt):
            runs.run(tmp_path, resume=True)
    runs.run(tmp_path, resume=True)
    assert runs.contents(tmp_path) == whole


def test_a_run_whose_pointer_is_lost_goes_on_from_its_newest_checkpoint(whole, tmp_path):
    """That of Ctrl-C, too, which alone has the optimizer's state."""
    runs.interrupted(tmp_path, 5)
    (tmp_path / "latest").unlink()
    runs.run(tmp_path, resume=True)
    assert runs.contents(tmp_path) == whole


def test_ctrl_c_before_the_first_update_leaves_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.training.loop.stop_request", pressed_before)
    with pytest.raises(KeyboardInterrupt):
        runs.run(tmp_path)
    assert not is_run(tmp_path)


def test_the_run_goes_on_from_the_last_checkpoint(whole, tmp_path, monkeypatch):
    """Where memory runs out, as if it had never been stopped."""
    with monkeypatch.context() as patch:
        runs.after_update(patch, lambda trainer: too_much() if trainer.progress.step == 5 else None)
        with pytest.raises(MemoryError):
            runs.run(tmp_path)
    assert numbered(tmp_path) == ["00000004"]
    runs.run(tmp_path, resume=True)
    assert runs.contents(tmp_path) == whole


# ----------------------------------------------------------------- from an older checkpoint

KEPT = {"keep": 9}
NAMES = [f"{step:08d}" for step in (4, 8, 12, 14)]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A run that was never stopped. Nobody changes it."""
    out = tmp_path_factory.mktemp("whole")
    runs.run(out, **KEPT)
    assert set(NAMES) <= set(checkpoint_names(out))
    return out


@pytest.fixture
def copy(kept, tmp_path):
    return shutil.copytree(kept, tmp_path / "run")


def damage(out, *names):
    for name in names:
        flip_a_byte(out / "checkpoints" / name / "model.safetensors")


@pytest.mark.parametrize(("name", "damaged"), [("00000004", NAMES[1:]), ("00000012", ["00000014"]), ("00000012", [])])
def test_a_run_goes_on_from_an_older_checkpoint_with_a_new_optimizer(name, damaged, copy, capsys):
    """Whose moments the latest alone has. A later checkpoint is the best no longer: the run writes it anew."""
    weights, names = runs.bits(load_run(copy, name)[1]), checkpoint_names(copy)
    damage(copy, *damaged)
    trainer = runs.new_trainer(copy, resume=name, **KEPT)
    assert runs.bits({key: value.numpy() for key, value in trainer.model.state_dict().items()}) == weights
    assert "has no state of the optimizer" in capsys.readouterr().err
    assert pointed(copy, "latest") == name >= pointed(copy, "best")
    assert checkpoint_names(copy) == names, "later ones are there until the run saves"
    assert [int(row["step"]) for row in trainer.log.rows()] == [step for step in (4, 8, 12) if step <= int(name)]
    fit(trainer, show_progress=False)
    assert load_run(copy, "latest")[0].progress.step == 14
    assert all(check(copy, other) is None for other in checkpoint_names(copy))
    assert trainer.best == (pointed(copy, "best"), load_run(copy, "best")[0].progress.validation)


def test_a_run_that_is_killed_soon_after_goes_on_from_there_again(copy):
    """Where the latest checkpoint is lost, too, and each time before it saves; later ones are there until then."""
    shutil.rmtree(copy / "checkpoints" / NAMES[-1])
    for which in (NAMES[0], "latest", "latest", NAMES[0]):
        assert runs.new_trainer(copy, resume=which, **KEPT).progress.step == 4
    assert numbered(copy) == NAMES[:-1]


def removed_by_hand(out, trainer, monkeypatch):
    for name in numbered(out):
        if name > trainer.latest:
            shutil.rmtree(out / "checkpoints" / name)


def killed_before_the_last_is_there_again(out, trainer, monkeypatch):
    """After the earlier checkpoint of that name was removed, which it replaces."""
    replace = os.replace

    def killed(source, target):
        if os.path.basename(target) == NAMES[-1]:
            raise Killed
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(Killed):
            fit(trainer, show_progress=False)


@pytest.mark.parametrize(("name", "lose"), [(NAMES[0], removed_by_hand),
                                            (NAMES[2], killed_before_the_last_is_there_again)])
def test_the_checkpoint_that_a_run_went_back_to_is_enough(name, lose, copy, monkeypatch):
    """Where later ones are gone, it is the newest and the latest, and has no state of the optimizer."""
    lose(copy, runs.new_trainer(copy, resume=name, **KEPT), monkeypatch)
    assert numbered(copy)[-1] == pointed(copy, "latest") == name
    assert all(check(copy, other) is None for other in checkpoint_names(copy))
    runs.run(copy, resume=True, **KEPT)
    assert pointed(copy, "latest") == NAMES[-1]


def test_the_best_of_the_others_takes_the_place_of_a_lost_best_checkpoint(copy):
    """By their own validations: that of the checkpoint which the run goes on from, or of one before it."""
    found = {name: load_run(copy, name)[0].progress.validation for name in NAMES if name != pointed(copy, "best")}
    damage(copy, pointed(copy, "best"))
    best = max(found, key=lambda name: (found[name].metric, -found[name].loss))
    trainer = runs.new_trainer(copy, resume=max(found), **KEPT)
    assert (pointed(copy, "best"), trainer.best) == (best, (best, found[best]))
