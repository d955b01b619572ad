"""The folder of a run: complete whenever the run is killed, pruned to what is asked for, and read with care."""

import errno
import os
import shutil
import sys
from functools import partial

import pytest

from tests.transformer import runs
from transformer.training import checkpoints
from transformer.training.checkpoints import check, load_checkpoint, load_model, load_run
from transformer.training.log import Log
from transformer.training.loop import TrainingError, fit
from transformer.training.run_folder import RunError, is_run, point, pointed, prune


def test_a_checkpoint_gives_back_what_was_saved(tmp_path, device):
    """As JSON and safetensors, from which a model comes back in evaluation mode; on another device, too."""
    trainer = runs.new_trainer(tmp_path, device=device)
    updated(trainer).save()
    run, _, moments = load_run(tmp_path, "latest")
    assert runs.bits(moments) == runs.bits(trainer.moments())
    assert (run.options, run.to_json()) == (trainer.options, trainer.run.to_json())
    assert run.tokenizers[0] is run.tokenizers[1], "as they were built: shared"
    for where in ("cpu", device):
        model, run = load_model(tmp_path, where, "latest")
        assert (model.training, model.device, model.config) == (False, where, runs.config())
        assert runs.bits(weights(model)) == runs.bits(weights(trainer.model))


def weights(model):
    return {key: value.numpy() for key, value in model.state_dict().items()}


def names(out):
    return sorted(path.name for path in (out / "checkpoints").iterdir())


def test_a_runs_folder_and_pruning_which_removes_leftovers_but_nothing_of_the_users(out):
    assert {path.name for path in out.iterdir()} >= {"log.csv", "tokenizer.json", "latest", "best"}
    folder = out / "checkpoints"
    for name in ("00000005-interrupted", "00000004-average-2", "00000009", ".00000006.77.partial", "mine",
                 "00000004-copy"):
        shutil.copytree(folder / "00000004", folder / name)
    prune(out, "00000006", None, 2)
    assert names(out) == ["00000004", "00000004-copy", "00000006", "mine"]
    prune(out, "00000006", "00000004", 1)
    assert names(out) == ["00000004", "00000004-copy", "00000006", "mine"], "the best stays"
    prune(out, "00000006", "mine", 1)
    assert names(out) == ["00000004-copy", "00000006", "mine"]


class Killed(BaseException):
    """Nothing catches it, as nothing catches kill -9."""


def broken_at(n, error, action):
    """Do it until its n-th operation on files, which raises `error`; the exception that comes of it, or None.

    After Killed each later operation raises, too: what an exception would still clean up, kill -9 does not.
    """
    count = 0

    def counting(operation):
        def counted(*arguments, **options):
            nonlocal count
            count += 1
            if count == n or (count > n and isinstance(error, Killed)):
                raise error
            return operation(*arguments, **options)
        return counted

    with pytest.MonkeyPatch.context() as patch:
        for name in ("replace", "rename", "fsync", "mkdir", *["unlink", "rmdir"] * isinstance(error, Killed)):
            patch.setattr(os, name, counting(getattr(os, name)))
        try:
            action()
        except (Killed, TrainingError) as raised:
            return raised
    return None


def small_trainer(out, **changes):
    """Little to train and little to write; it goes on from the latest checkpoint, if there is one."""
    return runs.new_trainer(out, {"d_model": 4, "num_heads": 1, "d_ff": 4}, runs.PAIRS[:4], runs.VALID[:1],
                            resume="latest" * is_run(out), **{"valid_sentences": 1, **changes})


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
    updated(small_trainer(whole)).validate_and_save()
    expected = runs.contents(whole)
    assert expected["best"] == expected["latest"] == f"{checkpoints_before + 1:08d}", "each was better than the last"
    for moment in range(1, 99):
        out = shutil.copytree(original, tmp_path / "killed")
        trainer = updated(small_trainer(out))
        killed = broken_at(moment, Killed(), trainer.validate_and_save)
        if is_run(out):
            steps = [load_run(out, which)[0].progress.step for which in ("latest", "best")]
            assert all(checkpoints_before <= step <= checkpoints_before + 1 for step in steps), moment
        else:
            assert checkpoints_before == 0
        trainer = small_trainer(out)
        if trainer.progress.step == checkpoints_before:
            updated(trainer).validate_and_save()
        assert runs.contents(out) == expected, moment
        shutil.rmtree(out)
        if not killed:
            break
    assert 12 < moment < 98


def test_a_full_disk_at_any_operation_costs_no_checkpoint(tmp_path):
    """Every second one is tried. The error names the file and the checkpoint that is left; nothing half written stays,
    and the run goes on.
    """
    original = tmp_path / "original"
    updated(small_trainer(original, steps=2)).validate_and_save()
    for n in range(1, 99, 2):
        trainer = small_trainer(shutil.copytree(original, tmp_path / "full"), steps=2)
        code = (errno.ENOSPC, errno.EIO)[n // 2 % 2]
        error = broken_at(n, OSError(code, os.strerror(code)), partial(fit, trainer, show_progress=False))
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


DAMAGED = ["5,1,2.5,one,0,0.01,1,1", "5,1,2.5", "5,1,2.5,2,0,0.01,1,\0", "5" * 200_000 + ",1,1,1,1,1,1,1",
           "²,1,1,1,1,1,1,1", '5,"1,2.5', "\ud800", "a,b,c"]


def test_the_log_is_cut_back_to_the_checkpoint(out):
    """Lines of what a killed run did after it, the last one torn, are dropped, and so are damaged ones."""
    log = Log(out / "log.csv")
    text = log.path.read_bytes()
    head, first, rest = text.split(b"\n", 2)
    damaged = [line.encode("utf-8", "surrogatepass") for line in DAMAGED]
    log.path.write_bytes(b"\n".join([head, first, *damaged, rest]) + b"8,2,1.5,1.25,0.5,0.01,800,9.5,1\r\n16,4,1.")
    rows, damaged = log.read()
    assert [row["step"] for row in rows] == ["4", "6", "8"]
    assert damaged == [3, 4, 5, 6, 7, 8, 9, 10, 13]
    log.cut_after(6)
    assert log.path.read_bytes() == text


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
    log.draw("exact_match")
    assert not (out / "history.png").exists()
    if what != "folder":
        runs.run(out, resume=True, steps=8, schedule="constant")
        assert [row["step"] for row in log.rows()] == ["8"]
        log.draw("exact_match")
        assert (out / "history.png").read_bytes().startswith(b"\x89PNG")
        monkeypatch.setattr("transformer.explore.plots.plot_history", lambda *arguments, **options: 1 / 0)
        log.draw("exact_match")
        monkeypatch.undo()
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        log.draw("exact_match")
        told = capsys.readouterr().err
        assert "note: no history.png: division by zero" in told
        assert "note: no history.png: a plot needs the package 'matplotlib', from pip install" in told
