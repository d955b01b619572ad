"""The folder of a run: complete whenever the run is killed, pruned to what is asked for, and read with care."""

import errno
import os
import shutil
from functools import partial

import pytest

from tests.transformer import runs
from transformer.training import checkpoints
from transformer.training.checkpoints import check, load_checkpoint, load_model, load_run
from transformer.training.log import COLUMNS, Log
from transformer.training.loop import TrainingError, fit
from transformer.training.run_folder import RunError, is_run, numbered, point, pointed, prune


def test_a_checkpoint_gives_back_what_was_saved(tmp_path):
    trainer = runs.new_trainer(tmp_path)
    trainer.update(next(trainer.groups()))
    trainer.save()
    run, arrays, moments = load_run(tmp_path, "latest")
    assert runs.bits(arrays) == runs.bits({k: v.numpy() for k, v in trainer.model.state_dict().items()})
    assert runs.bits(moments) == runs.bits(trainer.moments())
    state = trainer.optimizer.state_dict()
    trainer.load_moments(moments)
    assert trainer.optimizer.state_dict()["param_groups"] == state["param_groups"]
    assert {i: runs.bits(entry) for i, entry in trainer.optimizer.state_dict()["state"].items()} == {
        i: runs.bits(entry) for i, entry in state["state"].items()}
    assert run.to_json() == trainer.run.to_json()
    assert run.progress.best is None, "nothing was validated yet"


def test_files_are_json_and_safetensors_only(out):
    """From which a model comes back in evaluation mode."""
    names = {path.name for path in out.rglob("*") if path.is_file()}
    assert names == {"model.safetensors", "optimizer.safetensors", "run.json", "latest", "best", "log.csv",
                     "tokenizer.json"}
    model, run = load_model(out, which="latest")
    assert not model.training
    assert model.config == run.config == runs.config()
    assert run.source_tokenizer is run.target_tokenizer, "as they were built: shared"
    assert runs.bits({k: v.numpy() for k, v in model.state_dict().items()}) == runs.bits(runs.parameters(out))


def names(out):
    return sorted(path.name for path in (out / "checkpoints").iterdir())


@pytest.mark.parametrize(("keep", "kept"), [(1, [1, 5]), (3, [1, 3, 4, 5])])
def test_the_newest_the_latest_and_the_best_are_kept(keep, kept, tmp_path):
    trainer = runs.new_trainer(tmp_path, keep=keep)
    for step in range(1, 6):
        trainer.progress.step = trainer.progress.validated = step
        trainer.progress.improved = step == 1
        trainer.save()
    assert (pointed(tmp_path, "best"), pointed(tmp_path, "latest")) == ("00000001", "00000005")
    assert names(tmp_path) == numbered(tmp_path) == [f"{step:08d}" for step in kept]


def test_pruning_removes_leftovers_but_nothing_of_the_users(out):
    folder = out / "checkpoints"
    for name in ("00000005-interrupted", "00000004-average-2", "00000009", ".00000006.77.partial", "mine",
                 "00000004-copy"):
        shutil.copytree(folder / "00000004", folder / name)
    prune(out, 1)
    assert names(out) == ["00000004-copy", "00000006", "mine"]
    point(out, "best", "mine")
    prune(out, 5)
    assert "mine" in names(out)


class Killed(BaseException):
    """Nothing catches it, as nothing catches kill -9."""


FILE_OPERATIONS = ("replace", "rename", "fsync", "mkdir", "unlink", "rmdir")


def killed_at(n, action):
    """Do it until its n-th operation on files; whether it was killed."""
    count = 0

    def counting(operation):
        def counted(*arguments, **options):
            nonlocal count
            count += 1
            if count > n:  # and each one after it: what an exception would still clean up, kill -9 does not
                raise Killed
            return operation(*arguments, **options)
        return counted

    with pytest.MonkeyPatch.context() as patch:
        for name in FILE_OPERATIONS:
            patch.setattr(os, name, counting(getattr(os, name)))
        try:
            action()
        except Killed:
            return True
    return False


def small_trainer(out, **changes):
    """Little to train and little to write."""
    model = {"d_model": 4, "num_heads": 1, "d_ff": 4}
    return runs.new_trainer(out, model, runs.PAIRS[:4], runs.VALID[:1], **{"valid_sentences": 1, **changes})


def updated(trainer):
    trainer.update(next(trainer.groups()))
    return trainer


@pytest.mark.parametrize("checkpoints_before", [0, 2])
def test_killed_at_any_operation_while_saving(checkpoints_before, tmp_path):
    """Writing the files, the folder, each pointer, pruning: "latest" is complete, and going on repairs the rest."""
    original = tmp_path / "original"
    trainer = small_trainer(original)
    for _ in range(checkpoints_before):
        updated(trainer).validate_and_save()
    whole = shutil.copytree(original, tmp_path / "whole")
    trainer.out, trainer.log = whole, Log(whole / "log.csv")
    updated(trainer).validate_and_save()
    expected = runs.contents(whole)
    assert expected["best"] == expected["latest"] == f"{checkpoints_before + 1:08d}", "each was better than the last"

    def restored(out):
        trainer = small_trainer(tmp_path / "other")
        trainer.out, trainer.log = out, Log(out / "log.csv")
        if is_run(out):
            trainer.restore()
        else:
            trainer.log.cut_after(0)
        return trainer

    moments = 0
    while True:
        out = shutil.copytree(original, tmp_path / "killed")
        trainer = updated(restored(out))
        killed = killed_at(moments, trainer.validate_and_save)
        if is_run(out):
            steps = [load_run(out, which)[0].progress.step for which in ("latest", "best")]
            assert all(checkpoints_before <= step <= checkpoints_before + 1 for step in steps), moments
        else:
            assert checkpoints_before == 0
        trainer = restored(out)
        if trainer.progress.step == checkpoints_before:
            updated(trainer).validate_and_save()
        assert runs.contents(out) == expected, moments
        shutil.rmtree(out)
        if not killed:
            break
        moments += 1
    assert moments > 12


def failing_at(n, code, action):
    """Do it, with an OSError of this code at its n-th operation on files; the error, or None."""
    count = 0

    def failing(operation):
        def attempted(*arguments, **options):
            nonlocal count
            count += 1
            if count == n:
                raise OSError(code, os.strerror(code))
            return operation(*arguments, **options)
        return attempted

    with pytest.MonkeyPatch.context() as patch:
        for name in ("replace", "rename", "fsync", "mkdir"):
            patch.setattr(os, name, failing(getattr(os, name)))
        try:
            action()
        except TrainingError as error:
            return error
    return None


def test_a_full_disk_at_any_operation_costs_no_checkpoint(tmp_path):
    """Every second one is tried. The error names the file and the checkpoint that is left; nothing half written stays,
    and the run goes on.
    """
    original = tmp_path / "original"
    updated(small_trainer(original, steps=2)).validate_and_save()
    for n in range(1, 99, 2):
        trainer = small_trainer(tmp_path / "other", steps=2)
        trainer.out = shutil.copytree(original, tmp_path / "full")
        trainer.log = Log(trainer.out / "log.csv")
        trainer.restore()
        error = failing_at(n, (errno.ENOSPC, errno.EIO)[n // 2 % 2], partial(fit, trainer, show_progress=False))
        if error is None:
            break
        last = pointed(trainer.out, "latest")
        assert str(trainer.out) in str(error)
        assert f"the last checkpoint, {last}, is intact" in str(error)
        assert check(trainer.out, last) is None
        assert [path for path in trainer.out.rglob(".*") if "removed" not in path.name] == []
        trainer.restore()
        fit(trainer, show_progress=False)
        assert pointed(trainer.out, "latest") == "00000002"
        shutil.rmtree(trainer.out)
    assert n > 8


def test_a_reader_follows_a_pointer_that_a_training_moves_meanwhile(out, monkeypatch):
    expected = runs.parameters(out)

    def read_after_the_training(folder, name):
        if name == "00000004":  # as it was when "latest" was read: the training has removed it
            point(folder, "latest", "00000006")
            raise RunError("00000004 is missing")
        return load_checkpoint(folder, name)

    point(out, "latest", "00000004")
    monkeypatch.setattr(checkpoints, "load_checkpoint", read_after_the_training)
    assert runs.bits(load_run(out, "latest")[1]) == runs.bits(expected)


def test_killed_between_the_first_checkpoint_and_its_pointer(out, finished):
    """The complete checkpoint is found without one."""
    (out / "latest").unlink()
    (out / "best").unlink()
    assert is_run(out)
    assert pointed(out, "latest") == numbered(out)[-1]
    steps = load_run(out, "latest")[0].progress.step
    runs.run(out, resume=True, steps=steps, schedule="constant", keep=3)
    assert runs.contents(out) == runs.contents(finished)


def test_the_log_is_cut_back_to_the_checkpoint(out, finished):
    """Lines of what a killed run did after it, one of them torn, one garbled, are dropped; so is a foreign file."""
    log = Log(out / "log.csv")
    with open(log.path, "ab") as file:
        file.write(b"8,2,1.5,1.25,0.5,0.01,800,9.5\r\n12,3,1.5,1.25,0.5,0.01,8\r\n\xff\x00,,,,,,,1\r\n16,4,1.")
    log.cut_after(6)
    assert log.path.read_bytes() == (finished / "log.csv").read_bytes()
    log.path.write_text("a,b,c\n1,2,3\n")
    log.cut_after(6)
    assert log.path.read_text() == ",".join(COLUMNS) + "\n"


@pytest.mark.parametrize("line", ["5,1,2.5,one,0,0.01,1,1", "5,1,2.5", "5,1,2.5,2,0,0.01,1,\0",
                                  "5" * 200_000 + ",1,1,1,1,1,1,1", "²,1,1,1,1,1,1,1", '5,"1,2.5', "\ud800"])
def test_a_damaged_line_of_the_log_is_left_out_with_a_note(line, out, capsys):
    log = Log(out / "log.csv")
    text = log.path.read_bytes()
    head, first, rest = text.split(b"\n", 2)
    log.path.write_bytes(b"\n".join([head, first, line.encode("utf-8", "surrogatepass"), rest]))
    assert [row["step"] for row in log.rows()] == ["4", "6"]
    runs.run(out, resume=True, steps=6, schedule="constant", keep=3)
    assert log.path.read_bytes() == text
    assert capsys.readouterr().err == f"note: {log.path}: damaged lines are left out: 3\n"


@pytest.mark.parametrize("what", ["missing", "folder", "garbled"])
def test_no_training_fails_for_its_log_or_its_picture(what, out, monkeypatch, capsys):
    """A folder in place of the log is refused before anything changes: no line could be added."""
    log = Log(out / "log.csv")
    log.path.unlink()
    if what == "folder":
        log.path.mkdir()
        with pytest.raises(RunError, match=r"log\.csv: cannot be read"):
            runs.run(out, resume=True, steps=6, schedule="constant")
    elif what == "garbled":
        log.path.write_bytes(bytes(range(256)) * 9)
    assert log.draw("exact_match") is None
    if what != "folder":
        runs.run(out, resume=True, steps=8, schedule="constant")
        assert [row["step"] for row in log.rows()] == ["8"]
        monkeypatch.setattr("transformer.explore.plots.plot_history", lambda *arguments, **options: 1 / 0)
        assert log.draw("exact_match") is None
        assert "note: no history.png: division by zero" in capsys.readouterr().err
