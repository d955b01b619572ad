"""One training at a time writes to a folder; what is refused leaves nothing behind."""

import errno
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.transformer import runs
from tests.transformer.commands import SMALL, call, refused
from transformer.training import run_folder
from transformer.training.run_folder import RunError, check_free, only_writer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")


def test_a_second_training_in_the_folder_is_refused(tmp_path, monkeypatch):
    """In another thread, as in another process; it changes nothing, and the first one ends as if it were alone."""
    errors = []

    def begin(resume):
        with pytest.raises(RunError) as caught:
            runs.run(tmp_path / "run", resume=resume)
        errors.append(str(caught.value))

    def disturb(trainer):
        monkeypatch.undo()
        with ThreadPoolExecutor() as threads:
            list(threads.map(begin, (False, True)))

    runs.after_update(monkeypatch, disturb)
    runs.run(tmp_path / "run")
    assert len(errors) == 2
    assert all(f"{tmp_path / 'run'}: another training writes to it" in error for error in errors)
    runs.run(tmp_path / "alone")
    assert runs.contents(tmp_path / "run") == runs.contents(tmp_path / "alone")


def test_commands_are_refused_before_they_prepare_data_and_readers_never(small_run, tmp_path, monkeypatch):
    out = shutil.copytree(small_run, tmp_path / "run")
    with only_writer(out, new=False), monkeypatch.context() as patch:
        patch.setattr("transformer.cli.sources.read", lambda data: pytest.fail("prepared data"))
        for more in (SMALL, ["--resume"]):
            assert f"{out}: another training writes to it" in refused("train", *more, "--out", out)
        patch.undo()
        for command in (["translate", out], ["evaluate", out, "--count", 2], ["info", out],
                        ["explain", out, "a b", "--text"]):
            assert call(*command, standard_input="a\n").exit_code == 0
    check_free(out)


def test_folders_without_files_are_removed_again(tmp_path):
    out = tmp_path / "new" / "run"
    with pytest.raises(RunError, match="16 positions"):
        runs.run(out, train_pairs=[(" ".join("abcdefghijabcdef"), "a")])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "new").mkdir()
    with only_writer(out, new=True):
        (out / "log.csv").touch()
    assert (out / "log.csv").exists()


def test_a_folder_that_a_failed_training_removes_meanwhile_is_not_locked(tmp_path, monkeypatch):
    """It does so after this one has opened the folder: another could make the folder again, and lock that."""
    monkeypatch.setattr(run_folder.fcntl, "flock", lambda descriptor, how: (tmp_path / "run").rmdir())
    with pytest.raises(RunError, match="another training"), only_writer(tmp_path / "run", new=True):
        pytest.fail("entered")


@pytest.mark.parametrize("missing", ["file system", "platform"])
def test_where_there_are_no_locks_a_note_says_so(missing, tmp_path, monkeypatch, capsys):
    def no_locks(*arguments):
        raise OSError(errno.ENOLCK, "No locks available")

    if missing == "platform":
        monkeypatch.setattr(run_folder, "fcntl", None)
    else:
        monkeypatch.setattr(run_folder.fcntl, "flock", no_locks)
    check_free(tmp_path)
    for _ in range(2):
        with only_writer(tmp_path / "run", new=True):
            (tmp_path / "run" / "file").touch()
        said = capsys.readouterr().err
        assert said.startswith(f"note: {tmp_path / 'run'}: ")
        assert said.count("\n") == 1
